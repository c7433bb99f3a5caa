"""Tokens of instructions: the name of one is one token; in its content each letter is one."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from tinygrad_tf.corpus.combinations import INSTRUCTIONS, THEN
from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Ids

COLON = ": "
_CHARACTERS = "\n:" + string.digits + string.ascii_letters


class InstructionTokenizer:
    """A tokenizer of instructions: `reverse then copy: copy` is
    (reverse)( then )(copy)(: )(c)(o)(p)(y).
    """

    tokens: ClassVar[tuple[str, ...]] = (*INSTRUCTIONS, THEN, COLON, *_CHARACTERS)
    vocab_size: ClassVar[int] = len(tokens)
    _pattern = re.compile(rf"(?:{'|'.join(INSTRUCTIONS)})(?=: | then )| then |: |.", re.DOTALL)

    def __init__(self) -> None:
        self._ids = {token: i for i, token in enumerate(self.tokens)}

    def encode(self, text: str) -> Ids:
        """Encode a text as ids (N,); InputError for what is no letter, digit or instruction."""
        try:
            ids = [self._ids[token] for token in self._pattern.findall(text)]
        except KeyError as fault:
            raise InputError(
                f"{fault} is unknown to this model", "it knows the letters a to z and digits"
            ) from None
        return np.array(ids, np.int64)

    def decode(self, ids: Iterable[int]) -> str:
        """Decode ids (N,) to a text."""
        return "".join(self.tokens[int(i)] for i in ids)
