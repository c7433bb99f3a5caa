"""The six parts of the story, with every number that source document S4 gives or implies."""

import numpy as np
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
from toymodels.sentences import CMD3, LOGS, PAIR, Language

LOGS_ = Language.of(LOGS)


def exhibit(part, kind, title=""):
    return [e for e in part.exhibits if isinstance(e, kind) and title in e.title]


def cells(grid):
    """The cells of a matrix that are not 0."""
    return {
        (grid.rows[r], grid.columns[c]): pytest.approx(grid.values[r, c])
        for r, c in np.argwhere(grid.values)
    }


def test_the_chain_of_three_commands():
    part = one_word_back(Language.of(CMD3))
    (grid,) = exhibit(part, Matrix)
    assert cells(grid) == {
        ("show", "me"): 1, ("me", "my"): 1, ("my", "directories"): 0.2, ("my", "files"): 0.3,
        ("my", "photos"): 0.5, ("directories", "please"): 1, ("files", "please"): 1,
        ("photos", "please"): 1,
    }  # fmt: skip
    open_, likely = exhibit(part, ReportTable)
    assert open_.rows == (("my", pytest.approx(1.0296530140645737), pytest.approx(1.48547529723)),)
    assert [row[1:] for row in likely.rows] == [pytest.approx((p, p)) for p in (0.2, 0.3, 0.5)]
    assert "show me my photos please" in part.remarks[-1]


def test_one_word_leaks_and_two_do_not():
    part = two_words_back(Language.of(PAIR))
    first, second = exhibit(part, Matrix)
    assert cells(first)["ran", "down"] == 0.4 and cells(first)["the", "program"] == 0.6
    assert second.rows == (
        "battery ran", "check whether", "program ran", "ran down", "the battery", "the program",
        "whether the",
    )  # fmt: skip
    assert cells(second)["whether the", "battery"] == 0.4
    likely, cost = exhibit(part, ReportTable)
    assert {row[0]: row[1:] for row in likely.rows} == {
        "check whether the battery ran down please": pytest.approx((0.4, 0.16, 0.4)),
        "check whether the battery ran please": pytest.approx((0, 0.24, 0)),
        "check whether the program ran down please": pytest.approx((0, 0.24, 0)),
        "check whether the program ran please": pytest.approx((0.6, 0.36, 0.6)),
    }
    assert cost.rows[0][1:] == pytest.approx((0.48, 1.346023334018513, 1.9419011889093374))
    assert cost.rows[1][1:] == pytest.approx((0, 0.6730116670092565, 0.9709505944546686))
    assert "`ran` and `the`" in part.remarks[0] and "`whether the`" in part.remarks[0]
    assert "64 pairs, of which 7" in part.remarks[1]


def test_votes_of_all_words():
    part = all_words_vote(LOGS_)
    (grid,) = exhibit(part, Matrix)
    both = ("and", "check", "find", "it", "log", "out", "the", "whether")
    wanted = {word: [0.5, 0.5] for word in both}
    wanted |= {"battery": [1, 0], "program": [0, 1]}
    wanted |= {word: [0, 0] for word in ("down", "please", "ran")}
    assert grid.columns == ("down", "please")
    assert dict(zip(grid.rows, grid.values.tolist(), strict=True)) == wanted
    votes = {bars.title.split()[4]: dict(zip(bars.labels, bars.values, strict=True))
             for bars in exhibit(part, Bars)}  # fmt: skip
    assert votes == {
        "program": {"down": 4, "please": 5}, "battery": {"down": 5, "please": 4}
    }  # fmt: skip
    tables = exhibit(part, ReportTable)
    walks = {table.title.rstrip("`").split()[-1]: table.rows for table in tables}
    words = ["log", "and", "find", "out", "whether", "it", "ran"]
    assert walks["battery"][:7] == tuple((w, v, "") for w, v in zip(words, range(2, 9)))  # noqa: B905
    assert walks["battery"][7:] == (("down", 5, "please 4"), ("please", 10, ""))
    assert walks["program"][7:] == (("please", 5, "down 4"),)
    assert "815,730,721 rows" in part.remarks[0] and "169" in part.remarks[0]
    assert part.remarks[1].startswith("64 pairs have a vote, 10 of them")


def test_the_mask_and_what_it_lets_through():
    part = masked_votes(LOGS_)
    (sheet,) = exhibit(part, ReportTable)
    columns = list(zip(*sheet.rows, strict=True))
    by_name = dict(zip(sheet.headings, columns, strict=True))
    assert by_name["battery"] == (1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1)
    assert by_name["program"] == (1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1)
    assert by_name["mask"] == (0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0)
    assert by_name["battery, masked"] == (0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    votes, masks = exhibit(part, Matrix)
    assert cells(votes) == {("battery, ran", "down"): 1, ("program, ran", "please"): 1}
    assert cells(masks) == {("ran", "battery"): 1, ("ran", "program"): 1}
    assert [b.values for b in exhibit(part, Bars)] == [(0, 1), (1, 0)]
    assert part.remarks[1] == "A lead of 5 to 4 (25%) becomes 1 to 0."


def test_the_transformer_wired_by_hand():
    part = wired_by_hand(LOGS_)
    (layer,) = exhibit(part, Matrix, "feature layer")
    assert layer.rows == ("battery", "program", "ran", "bias")
    assert layer.values.tolist() == [[1, -1], [-1, 1], [1, 1], [-1, -1]]
    (table,) = exhibit(part, ReportTable, "combination")
    found = {row[:3]: row[3:] for row in table.rows}
    assert found[1, 0, 1] == ("1 -1", "1 0") and found[0, 1, 1] == ("-1 1", "0 1")
    assert found[0, 1, 0] == ("-2 0", "0 0") and found[1, 1, 1] == ("0 0", "0 0")
    (battery,) = exhibit(part, ReportTable, "battery log")
    wanted = [
        (0, 0.1, 0.1, 0.2, 0, 0.2),
        (1, 0.231969317, 0.085336743, 0.317306059, -0.146632574, 0.317306059),
        (5, 0.942825619, 0.006352709, 0.949178328, -0.936472910, 0.949178328),
        (10, 0.9995915675173919, 4.5381e-05, 0.999636949, -0.999546186, 0.999636949),
    ]
    for row, numbers in zip(battery.rows, wanted, strict=True):
        assert row[:-1] == pytest.approx(numbers, abs=1e-9) and row[-1] == "down"


def test_the_learned_table_has_a_row_for_each_seed():
    part = found_by_learning(LOGS_, learn(LOGS_, (3, 4), Settings(steps=3)))
    (sheet,) = exhibit(part, ReportTable)
    assert [row[0] for row in sheet.rows] == [3, 4]
    for grid in exhibit(part, Matrix):
        assert grid.rows == ("mask", "attention") and grid.values[1].sum() == pytest.approx(1)
        assert grid.columns[int(grid.values[0].argmax())] in grid.title


def test_sentences_of_a_model_without_end_are_not_listed():
    loop = Language.of([("a b a b c", 1.0), ("c a", 1.0)])
    from toymodels.markov import Markov

    found = possible_sentences(loop, Markov.fit(loop.text, 1))
    assert {tuple(ids.tolist()) for ids in found} == set(loop.probabilities)
