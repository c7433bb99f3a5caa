"""The edges of a chain, and its drawings."""

from xml.etree import ElementTree

import numpy as np

from toymodels.chain import Chain, Edge, chain_of
from toymodels.markov import Markov
from toymodels.sentences import PAIR, Language

TWO = Language.of(PAIR)


def test_edges_are_shared_out_among_words_or_with_the_end():
    language = Language.of([("a b", 1), ("a", 3)])
    model = Markov.fit(language.text, 1)
    assert [e.probability for e in chain_of(model, language.vocabulary).edges] == [1]
    whole = chain_of(model, language.vocabulary, with_ends=True)
    edges = {(whole.nodes[e.source], whole.nodes[e.target]): e.probability for e in whole.edges}
    assert edges == {
        ("START", "a"): 1,
        ("a", "b"): 0.25,
        ("a", "END"): 0.75,
        ("b", "END"): 1,
    }


def test_the_picture_of_a_chain_has_every_node_and_edge():
    chain = chain_of(Markov.fit(TWO.text, 1), TWO.vocabulary)
    picture = chain.svg()
    root = ElementTree.fromstring(picture)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("ran") == 1 and {"0.4", "0.6"} <= set(texts)
    assert picture.count("marker-end") == len(chain.edges)
    assert picture.count("<rect") == len(chain.nodes)
    loop = Chain(("a<b",), (Edge(0, 0, 1.0),)).svg()
    assert "a&lt;b" in loop and ElementTree.fromstring(loop) is not None


def test_a_chain_has_the_matrix_for_its_edges():
    model = Markov.fit(TWO.text, 1)
    chain = chain_of(model, TWO.vocabulary)
    words, matrix = TWO.vocabulary.words, model.matrix()
    edges = {(chain.nodes[e.source], chain.nodes[e.target]): e.probability for e in chain.edges}
    assert edges == {(words[i], words[j]): matrix[i, j] for i, j in np.argwhere(matrix)}
    dot = chain.dot()
    assert dot.startswith("digraph {") and dot.count(" -> ") == len(edges) == 9
    ran, down = (chain.nodes.index(w) for w in ("ran", "down"))
    assert f'n{ran} -> n{down} [label="0.4"];' in dot
    whole = chain_of(model, TWO.vocabulary, with_ends=True)
    assert set(whole.nodes) == {*TWO.vocabulary.words, "START", "END"}
    second = chain_of(Markov.fit(TWO.text, 2), TWO.vocabulary)
    pairs = {(second.nodes[e.source], second.nodes[e.target]) for e in second.edges}
    assert ("whether the", "the battery") in pairs and ("ran down", "down please") in pairs
