"""Edges of a drawn chain, and which tokens a score counts."""

from xml.etree import ElementTree

from toymodels.chain import Chain, Edge, chain_of
from toymodels.markov import Markov
from toymodels.model import score
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


def test_a_score_may_leave_out_the_first_tokens():
    model, tokens = Markov.fit(TWO.text, 1, 0.1), TWO.text.tokens
    whole, part = score(model, tokens), score(model, tokens, 5)
    assert part.nats.tolist() == whole.nats[5:].tolist() and len(whole.nats) == len(tokens)
    assert part.right.tolist() == (model.predict(tokens) == tokens)[5:].tolist()


def test_the_picture_of_a_chain_has_every_node_and_edge():
    language = Language.of(PAIR)
    chain = chain_of(Markov.fit(language.text, 1), language.vocabulary)
    picture = chain.svg()
    root = ElementTree.fromstring(picture)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("ran") == 1 and {"0.4", "0.6"} <= set(texts)
    assert picture.count("marker-end") == len(chain.edges)
    assert picture.count("<rect") == len(chain.nodes)
    loop = Chain(("a<b",), (Edge(0, 0, 1.0),)).svg()
    assert "a&lt;b" in loop and ElementTree.fromstring(loop) is not None
