"""Writing text with a trained model: prompts, stop strings, streaming."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.models.gpt import GPT
from tinygrad_tf.models.generation import Sampling, generate_tokens
from tinygrad_tf.models.soft_prompt import PromptedGPT
from tinygrad_tf.storage.atomic import sha256_of
from tinygrad_tf.storage.run_directory import RunDirectory
from tinygrad_tf.text.tokenizer_files import find_tokenizer
from tinygrad_tf.text.tokenizers import Tokenizer, Unknown

# What stands for the beginning of a text where no prompt is given.
START = "\n"


class TextGenerator:
    """A model and its tokenizer: text in, text out."""

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
        # A table may be padded to a round size, or have holes: such ids are never chosen.
        known = tokenizer.known_ids()
        self._banned = np.setdiff1d(np.arange(model.config.vocab_size), known)

    @classmethod
    def load(
        cls,
        run_dir: str | Path,
        weights: str = "best",
        soft_prompt: str | Path | None = None,
    ) -> TextGenerator:
        """The model of a run with its tokenizer; weights: "best" by validation loss, or "last".

        soft_prompt: the file of a prompt that was tuned for these weights. Raises InputError
        where the directory is not a whole run, or the prompt is another model's.
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
        """The ids of a prompt; in a model of single lines, a line begins before them.

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
        options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        ids = self.prompt_ids(prompt, unknown)
        tokens = self._tokens(ids, max_new_tokens, np.random.default_rng(seed), options)
        stopper = StopStrings(stop)
        Sampling(temperature, top_k, top_p)
        return self._stream(tokens, stopper)

    def _tokens(
        self, ids: list[int], count: int, rng: np.random.Generator, options: dict[str, Any]
    ) -> Iterator[int]:
        """Token by token; a model of single lines begins anew after each line, as it learned."""
        start = self.tokenizer.encode(START, unknown="skip").tolist() if self.lines else None
        while count > 0:
            for (chosen,) in generate_tokens(
                self.model, np.array([ids]), count, rng=rng, banned=self._banned, **options
            ):
                count -= 1
                yield int(chosen)
                if [chosen] == start:
                    break
            ids = start or ids

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
        """The whole continuation; options as in `stream`."""
        return "".join(self.stream(prompt, max_new_tokens, **options))


class StopStrings:
    """Cuts a stream of text before the first of several strings, wherever the pieces end.

    Text that might be the beginning of a stop string is held back until it is decided.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        if any(not s for s in strings):
            raise InputError("a stop string is empty", "give at least one character")
        self.strings = tuple(strings)
        self.held = ""
        self.found = False

    def push(self, text: str) -> str:
        """Add text; returns what is certain to come before any stop string."""
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
        """What was held back, as far as it turned out not to be a stop string."""
        end = self._first()
        self.found = self.found or end < len(self.held)
        out, self.held = self.held[:end], ""
        return out

    def _first(self) -> int:
        """Where the first stop string in the held text begins, or its length."""
        places = (p for p in map(self.held.find, self.strings) if p >= 0)
        return min(places, default=len(self.held))

    def _overlap(self, stop: str) -> int:
        """The length of the longest end of the held text that begins the stop string."""
        longest = min(len(stop) - 1, len(self.held))
        return next((n for n in range(longest, 0, -1) if self.held.endswith(stop[:n])), 0)
