"""The six parts of the walkthrough: what they show of the models, which have tests of their own."""

import pytest

from cli.comparison.report import Bars, Matrix, ReportTable
from cli.comparison.walkthrough import (
    all_words_vote,
    masked_votes,
    one_word_back,
    possible_sentences,
    two_words_back,
)
from cli.comparison.walkthrough_transformers import found_by_learning, wired_by_hand
from toymodels.learned import Settings, learn
from toymodels.markov import Markov
from toymodels.sentences import CMD3, LOGS, PAIR, Language

LANGUAGE = Language.of(LOGS)


def exhibits(part, kind, title=""):
    return [e for e in part.exhibits if isinstance(e, kind) and title in e.title]


def test_the_chain_of_three_commands():
    part = one_word_back(Language.of(CMD3))
    open_, likely = exhibits(part, ReportTable)
    assert open_.rows == (("my", pytest.approx(1.0296530140645737), pytest.approx(1.48547529723)),)
    assert [row[1:] for row in likely.rows] == [pytest.approx((p, p)) for p in (0.2, 0.3, 0.5)]
    assert "show me my photos please" in part.remarks[-1]


def test_one_word_leaks_and_two_do_not():
    part = two_words_back(Language.of(PAIR))
    assert " ".join(exhibits(part, Matrix)[1].rows) == (
        "battery ran check whether program ran ran down the battery the program whether the"
    )
    likely, cost = exhibits(part, ReportTable)
    ran = next(row for row in likely.rows if row[0] == "check whether the battery ran please")
    assert ran[1:] == pytest.approx((0, 0.24, 0)) and len(likely.rows) == 4
    assert cost.rows[0][1:] == pytest.approx((0.48, 1.346023334018513, 1.9419011889093374))
    assert cost.rows[1][1:] == pytest.approx((0, 0.6730116670092565, 0.9709505944546686))
    assert "`ran` and `the`" in part.remarks[0] and "`whether the`" in part.remarks[0]
    assert "64 pairs, of which 7" in part.remarks[1]


def test_votes_of_all_words():
    part = all_words_vote(LANGUAGE)
    assert exhibits(part, Matrix)[0].columns == ("down", "please")
    votes = [dict(zip(bars.labels, bars.values, strict=True)) for bars in exhibits(part, Bars)]
    assert votes == [{"down": 4, "please": 5}, {"down": 5, "please": 4}]
    program, battery = (table.rows for table in exhibits(part, ReportTable))
    words = ["log", "and", "find", "out", "whether", "it", "ran"]
    assert battery[:7] == tuple((word, votes, "") for votes, word in enumerate(words, 2))
    assert battery[7:] == (("down", 5, "please 4"), ("please", 10, ""))
    assert program[7:] == (("please", 5, "down 4"),)
    assert "815,730,721 rows" in part.remarks[0] and "169" in part.remarks[0]
    assert part.remarks[1].startswith("64 pairs have a vote, 10 of them")


def test_the_mask_and_the_votes_under_it():
    part = masked_votes(LANGUAGE)
    (table,) = exhibits(part, ReportTable)
    rows = {row[0]: dict(zip(table.headings[1:], row[1:], strict=True)) for row in table.rows}
    assert [word for word, row in rows.items() if row["mask"]] == ["battery", "program"]
    assert [word for word, row in rows.items() if row["battery, masked"]] == ["battery"]
    assert [b.values for b in exhibits(part, Bars)] == [(0, 1), (1, 0)]
    assert part.remarks[1] == "A lead of 5 to 4 (25%) becomes 1 to 0."


def test_the_transformer_wired_by_hand():
    part = wired_by_hand(LANGUAGE)
    assert exhibits(part, Matrix, "feature layer")[0].rows == ("battery", "program", "ran", "bias")
    (table,) = exhibits(part, ReportTable, "combination")
    features = {row[:3]: row[3:] for row in table.rows}
    assert features[1, 0, 1] == ("1 -1", "1 0") and features[0, 1, 1] == ("-1 1", "0 1")
    assert features[0, 1, 0] == ("-2 0", "0 0") and features[1, 1, 1] == ("0 0", "0 0")
    (battery,) = exhibits(part, ReportTable, "battery log")
    assert [row[0] for row in battery.rows] == [0, 1, 5, 10]
    last = (0.9995915675173919, 4.5381e-05, 0.999636949, -0.999546186, 0.999636949)
    assert battery.rows[-1][1:-1] == pytest.approx(last, abs=1e-9)
    assert {row[-1] for row in battery.rows} == {"down"}


def test_the_learned_table_has_a_row_for_each_seed():
    part = found_by_learning(LANGUAGE, learn(LANGUAGE, (3, 4), Settings(steps=3)))
    (table,) = exhibits(part, ReportTable)
    assert [row[0] for row in table.rows] == [3, 4]
    for matrix in exhibits(part, Matrix):
        assert matrix.rows == ("mask", "attention")
        assert matrix.values[1].sum() == pytest.approx(1)
        assert matrix.columns[int(matrix.values[0].argmax())] in matrix.title


def test_sentences_of_a_model_without_end_are_not_listed():
    loop = Language.of([("a b a b c", 1.0), ("c a", 1.0)])
    sentences = possible_sentences(loop, Markov.fit(loop.text, 1))
    assert {tuple(ids.tolist()) for ids in sentences} == set(loop.probabilities)
