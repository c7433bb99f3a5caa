"""A soft prompt: learned vectors before the text of a GPT that itself learns nothing more.

Prompt tuning (Lester et al. 2021; source document S4, introduction): for each task only P vectors
of width C are learned and kept, whatever the size of the model that reads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from tinygrad_tf.engine import ops
from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.models.gpt import GPT
from tinygrad_tf.nn.cache import Cache
from tinygrad_tf.nn.module import Module, Parameter
from tinygrad_tf.storage.safetensors import (
    load_safetensors,
    read_header,
    save_safetensors,
    serialise,
)
from tinygrad_tf.storage.strict_json import parse_json
from tinygrad_tf.types import IGNORE, Array

SCHEMA_VERSION = 1
LONGEST_PROMPT = 4096
_TENSOR, _METADATA = "prompt", "soft_prompt"


def weights_sha256(model: GPT) -> str:
    """The sha256 of a model's weights: that of the model.safetensors which holds them."""
    digest = hashlib.sha256()
    for piece in serialise(model.file_tensors()):
        digest.update(piece)
    return digest.hexdigest()


@dataclass(frozen=True)
class SoftPrompt:
    """P learned vectors (P, C), float32, and the sha256 of the weights that they were learned for.

    task says what they were learned on; losses are of its held-out part, in nats per token,
    without the prompt and with it.
    """

    vectors: Array
    base_sha256: str
    task: str = ""
    steps: int = 0
    loss_before: float | None = None
    loss_after: float | None = None

    @property
    def length(self) -> int:
        """P, the number of vectors."""
        return int(self.vectors.shape[0])

    def save(self, path: str | Path) -> str:
        """Write a safetensors file with one tensor and JSON metadata; returns its sha256."""
        names = (field.name for field in fields(self) if field.name != "vectors")
        known = {name: getattr(self, name) for name in names}
        ours = json.dumps({"schema_version": SCHEMA_VERSION, **known}, allow_nan=False)
        vectors = np.ascontiguousarray(self.vectors, np.float32)
        return save_safetensors(path, {_TENSOR: vectors}, {"format": "pt", _METADATA: ours})

    @classmethod
    def load(cls, path: str | Path) -> SoftPrompt:
        """Read what `save` wrote; InputError names the file and its fault."""
        raw = read_header(path).metadata.get(_METADATA)
        if raw is None:
            raise _malformed(path, "it has no soft_prompt in its metadata")
        try:
            known = parse_json(raw.encode())
        except ValueError as fault:
            raise _malformed(path, f"its metadata is not JSON ({fault})") from None
        if not isinstance(known, dict) or known.pop("schema_version", None) != SCHEMA_VERSION:
            raise _malformed(path, f"its schema_version is not {SCHEMA_VERSION}")
        tensors = load_safetensors(path)
        vectors = tensors.get(_TENSOR)
        if len(tensors) != 1 or vectors is None or vectors.ndim != 2 or not vectors.size:
            raise _malformed(path, f"it does not hold one matrix named {_TENSOR!r}")
        if vectors.dtype != np.float32 or not np.isfinite(vectors).all():
            raise _malformed(path, "its numbers are not finite float32")
        try:
            prompt = cls(vectors, **known)
        except TypeError:
            raise _malformed(path, "its metadata has missing or unknown fields") from None
        if not isinstance(prompt.base_sha256, str) or not isinstance(prompt.task, str):
            raise _malformed(path, "its metadata is not of the right types")
        return prompt

    def require_base(self, model: GPT, name: str | Path) -> None:
        """Raise InputError, naming both digests, unless it was learned for these very weights."""
        found = weights_sha256(model)
        if found != self.base_sha256:
            raise InputError(
                f"{name} was tuned for another model (sha256 {self.base_sha256[:12]}, "
                f"this one is {found[:12]})",
                "give the run that it was tuned for, with the same --weights",
            )


class PromptedGPT(Module):
    """A frozen GPT that reads P learned vectors before every text: ids (B, T) -> (B, T, V).

    The vectors stand where positions are not told, being free to learn that too; so the text
    keeps positions 0 ... T - 1, on which the model was trained, and the whole block_size. The
    base has no part in `parameters()`, is put in evaluation mode for good, and its arrays are
    made read-only: whatever tried to train it would raise. Raises InputError for vectors of
    another width than the model's.
    """

    def __init__(self, base: GPT, vectors: Array) -> None:
        if vectors.ndim != 2 or not len(vectors) or vectors.shape[1] != base.config.n_embd:
            raise InputError(
                f"a prompt of shape {vectors.shape} for a model of width {base.config.n_embd}",
                f"give (length, {base.config.n_embd})",
            )
        self.config = base.config
        self.dropout_rng = base.dropout_rng
        self.prompt = Parameter(np.array(vectors, np.float32))
        # Within a tuple, where a Module does not look for its parameters.
        self._frozen = (freeze(base),)

    @classmethod
    def start(cls, base: GPT, length: int, seed: int = 0) -> PromptedGPT:
        """A prompt to be learned, which begins as the vectors of `length` tokens drawn at random.

        Lester et al. 2021, section 3.2, "sampled vocabulary". InputError for a length that is
        not from 1 to 4,096.
        """
        if not 1 <= length <= LONGEST_PROMPT:
            raise InputError(f"a prompt of {length} vectors", f"give 1 to {LONGEST_PROMPT}")
        rng = np.random.default_rng([seed, 2])
        rows = rng.integers(base.config.vocab_size, size=length)
        return cls(base, base.wte.weight.data[rows])

    @classmethod
    def load(cls, base: GPT, path: str | Path) -> PromptedGPT:
        """The prompt of a file before the model that it was tuned for; InputError for another."""
        prompt = SoftPrompt.load(path)
        prompt.require_base(base, path)
        return cls(base, prompt.vectors)

    @property
    def base(self) -> GPT:
        """The frozen model."""
        return self._frozen[0]

    @property
    def length(self) -> int:
        """P, the number of vectors."""
        return int(self.prompt.shape[0])

    def forward(self, ids: Any) -> Tensor:
        """Return logits (B, T, V) of the text alone."""
        return self.base.read(self._embed(ids), first=self.length)

    def next_logits(self, ids: Any, cache: Cache | None = None) -> Tensor:
        """Return logits (B, 1, V) of the token after ids (B, T), which continue the cache."""
        x = self._embed(ids, 0 if cache is None else cache.length)
        if cache is not None:
            cache.append(np.asarray(ids))
        return self.base.read(x, cache=cache, first=-1)

    def _embed(self, ids: Any, start: int = 0) -> Tensor:
        """Embed a text from position `start` on; before position 0 the prompt comes first."""
        text = self.base.embed(ids, start)
        if start:
            return text
        prompt = ops.broadcast_to(self.prompt, (len(text), *self.prompt.shape))  # (B, P, C)
        return ops.concatenate([prompt, text], axis=1)  # (B, P + T, C)

    def loss(self, ids: Any, targets: Any) -> Tensor:
        """Mean cross-entropy in nats per target of the text; the prompt predicts nothing."""
        return ops.cross_entropy(self.forward(ids), targets, ignore_index=IGNORE)

    def new_cache(self) -> Cache:
        """Make an empty cache with room for the prompt and a whole context."""
        return self.base.new_cache(self.length)

    def load_tensors(self, tensors: Mapping[str, Any]) -> None:
        """Take the prompt's vectors from {"prompt": (P, C)}."""
        self.load_state_dict(tensors)


def freeze(model: GPT) -> GPT:
    """Make a model's weights constants for good: no gradient, no dropout, read-only arrays."""
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad = False
        parameter.data.flags.writeable = False
    return model


def _malformed(path: str | Path, fault: str) -> InputError:
    return InputError(
        f"{path} is not a soft prompt of tt: {fault}", "use a file that tt tune-prompt wrote"
    )
