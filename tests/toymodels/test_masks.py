"""Which words a mask lets through."""

import numpy as np

from toymodels.masks import selective
from toymodels.sentences import PAIR, Language


def test_masks_of_the_pair():
    pair = Language.of(PAIR)
    masks = selective(pair.text).masks()
    asked = [(pair.vocabulary.words[i], pair.vocabulary.words[j]) for i, j in np.argwhere(masks)]
    assert asked == [("ran", "battery"), ("ran", "program")]


def test_where_nothing_is_open_nothing_is_let_in():
    certain = Language.of([("a b c d e", 1), ("f b c g h", 1)])
    kept = {certain.vocabulary.text([u, *c]) for u, c, _ in selective(certain.text).pairs()}
    assert kept == {"a c", "f c"}


def test_a_word_that_tells_nothing_new_is_not_let_in():
    echo = Language.of([("a x c m", 1), ("b y c n", 1)])
    kept = {echo.vocabulary.text([u, *c]) for u, c, _ in selective(echo.text).pairs()}
    assert len(kept & {"a c", "x c"}) == len(kept & {"b c", "y c"}) == 1 and len(kept) == 2
