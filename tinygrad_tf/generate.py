"""Text generation with a trained model: prompts, stop strings, streaming."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.models.generation import generate_tokens
from tinygrad_tf.models.gpt import GPT
from tinygrad_tf.models.soft_prompt import PromptedGPT
from tinygrad_tf.storage.atomic import sha256_of
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.text.tokenizer_files import find_tokenizer
from tinygrad_tf.text.tokenizers import Tokenizer, Unknown
from tinygrad_tf.types import Array

# The prompt where none is given: the beginning of a text.
START = "\n"


class TextGenerator:
    """A model with its tokenizer, which continues texts."""

    def __init__(
        self, model: GPT | PromptedGPT, tokenizer: Tokenizer, *, lines: bool = False
    ) -> None:
        if model.config.vocab_size < tokenizer.vocab_size:
            raise InputError(
                f"the model has {model.config.vocab_size} tokens, "
                f"the tokenizer {tokenizer.vocab_size}",
                "use the tokenizer that the model was trained with",
            )
        self.model, self.tokenizer, self.lines = model, tokenizer, lines
        # Ids without a token, where the table is padded or has holes, are never chosen.
        known = tokenizer.known_ids()
        self._banned = np.setdiff1d(np.arange(model.config.vocab_size), known)

    @classmethod
    def load(
        cls,
        run_dir: str | Path,
        weights: str = "best",
        soft_prompt: str | Path | None = None,
    ) -> TextGenerator:
        """Load the model of a run with its tokenizer.

        weights: "best" by validation loss, or "last". soft_prompt: the file of a prompt that was
        tuned for these weights. Raises InputError where the directory is not a whole run, or the
        prompt belongs to another model.
        """
        run = RunDirectory.open(run_dir)
        base = GPT.load(run_dir, weights=weights)
        model = base if soft_prompt is None else PromptedGPT.load(base, soft_prompt)
        block = run.read_config().get("tt")
        block = block if isinstance(block, dict) else {}
        experiment, digests = block.get("experiment"), block.get("files_sha256")
        tokenizer = find_tokenizer(run.path)
        path = run.path / "tokenizer.json"
        if isinstance(digests, dict) and digests.get(path.name) != sha256_of(path):
            raise InputError(
                f"{path} is not the tokenizer that the model was trained with",
                "restore it from a copy",
            )
        lines = isinstance(experiment, dict) and experiment.get("lines") is True
        return cls(model, tokenizer, lines=lines)

    def prompt_ids(self, prompt: str, unknown: Unknown = "error") -> list[int]:
        """Return the ids of a prompt; in a model of single lines, a newline comes before them.

        An empty prompt is a newline, or token 0 where the vocabulary has none. Raises
        InputError naming the characters that the model does not know.
        """
        text = START + prompt if self.lines else prompt
        ids = self.tokenizer.encode(text, unknown=unknown).tolist()
        return ids or self.tokenizer.encode(START, unknown="skip").tolist() or [0]

    def stream(
        self,
        prompt: str = "",
        max_new_tokens: int = 500,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: Sequence[str] = (),
        seed: int | None = None,
        unknown: Unknown = "error",
    ) -> Iterator[str]:
        """Yield the continuation of the prompt in pieces that are never half a character.

        Ends before the first of the `stop` strings. Raises InputError as `generate_tokens` and
        `prompt_ids` do, before anything is yielded.
        """
        generate = partial(
            generate_tokens,
            self.model,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            rng=np.random.default_rng(seed),
            banned=self._banned,
        )
        tokens = generate(np.array([self.prompt_ids(prompt, unknown)]), max_new_tokens)
        if self.lines:
            tokens = self._line_by_line(tokens, generate, max_new_tokens)
        return self._stream((int(token) for (token,) in tokens), StopStrings(stop))

    def _line_by_line(
        self, tokens: Iterator[Array], generate: Callable[[Array, int], Iterator[Array]], count: int
    ) -> Iterator[Array]:
        """Begin a new text after each line, as in the training of a model of single lines."""
        start = self.tokenizer.encode(START, unknown="skip")[None]
        while count > 0:
            for token in tokens:
                count -= 1
                yield token
                if count and np.array_equal(start, token[None]):
                    tokens = generate(start, count)
                    break

    def _stream(self, tokens: Iterator[int], stopper: StopStrings) -> Iterator[str]:
        decoder = self.tokenizer.decoder()
        for token in tokens:
            piece = stopper.push(decoder.push(token))
            if piece:
                yield piece
            if stopper.found:
                return
        piece = stopper.push(decoder.flush()) + stopper.flush()
        if piece:
            yield piece

    def write(self, prompt: str = "", max_new_tokens: int = 500, **options: Any) -> str:
        """Return the whole continuation; options as in `stream`."""
        return "".join(self.stream(prompt, max_new_tokens, **options))


class StopStrings:
    """A filter that ends a stream of text before the first of several strings.

    Text that may be the beginning of a stop string is held back until more text decides it.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        if any(not s for s in strings):
            raise InputError("a stop string is empty", "give at least one character")
        self.strings = tuple(strings)
        self.held = ""
        self.found = False

    def push(self, text: str) -> str:
        """Add text; returns the part that certainly comes before any stop string."""
        if self.found:
            return ""
        self.held += text
        # A string that is complete waits for one that may have begun before it.
        undecided = len(self.held) - max((self._overlap(s) for s in self.strings), default=0)
        if self._first() <= undecided:
            return self.flush()
        out, self.held = self.held[:undecided], self.held[undecided:]
        return out

    def flush(self) -> str:
        """Return the text that was held back, up to a stop string."""
        end = self._first()
        self.found = self.found or end < len(self.held)
        out, self.held = self.held[:end], ""
        return out

    def _first(self) -> int:
        """Return the index of the first stop string in the held text, or its length."""
        starts = (i for i in map(self.held.find, self.strings) if i >= 0)
        return min(starts, default=len(self.held))

    def _overlap(self, stop: str) -> int:
        """Return the length of the longest end of the held text that begins the stop string."""
        longest = min(len(stop) - 1, len(self.held))
        return next((n for n in range(longest, 0, -1) if self.held.endswith(stop[:n])), 0)
