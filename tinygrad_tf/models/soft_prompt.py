"""A soft prompt: learned vectors before the text of a GPT whose own weights are frozen.

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
    """Return the SHA-256 of a model's weights: the digest of their model.safetensors."""
    digest = hashlib.sha256()
    for piece in serialise(model.file_tensors()):
        digest.update(piece)
    return digest.hexdigest()


@dataclass(frozen=True)
class SoftPrompt:
    """P learned vectors (P, C), float32, and the SHA-256 of the weights that they belong to.

    task: a name for the text of the tuning. loss_before, loss_after: the loss on its held-out
    part, in nats per token, without the prompt and with it.
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
        """Write a safetensors file with one tensor and JSON metadata; returns its SHA-256."""
        names = (field.name for field in fields(self) if field.name != "vectors")
        details = {name: getattr(self, name) for name in names}
        ours = json.dumps({"schema_version": SCHEMA_VERSION, **details}, allow_nan=False)
        vectors = np.ascontiguousarray(self.vectors, np.float32)
        return save_safetensors(path, {_TENSOR: vectors}, {"format": "pt", _METADATA: ours})

    @classmethod
    def load(cls, path: str | Path) -> SoftPrompt:
        """Load a file of `save`; InputError names the file and its fault."""
        raw = read_header(path).metadata.get(_METADATA)
        if raw is None:
            raise _malformed(path, "it has no soft_prompt in its metadata")
        try:
            details = parse_json(raw.encode())
        except ValueError as fault:
            raise _malformed(path, f"its metadata is not JSON ({fault})") from None
        if not isinstance(details, dict) or details.pop("schema_version", None) != SCHEMA_VERSION:
            raise _malformed(path, f"its schema_version is not {SCHEMA_VERSION}")
        tensors = load_safetensors(path)
        vectors = tensors.get(_TENSOR)
        if len(tensors) != 1 or vectors is None or vectors.ndim != 2 or not vectors.size:
            raise _malformed(path, f"it does not hold one matrix named {_TENSOR!r}")
        if vectors.dtype != np.float32 or not np.isfinite(vectors).all():
            raise _malformed(path, "its numbers are not finite float32")
        try:
            prompt = cls(vectors, **details)
        except TypeError:
            raise _malformed(path, "its metadata has missing or unknown fields") from None
        if not isinstance(prompt.base_sha256, str) or not isinstance(prompt.task, str):
            raise _malformed(path, "its metadata is not of the right types")
        return prompt

    def require_base(self, model: GPT, name: str | Path) -> None:
        """Raise InputError, with both digests, unless the prompt belongs to these weights."""
        digest = weights_sha256(model)
        if digest != self.base_sha256:
            raise InputError(
                f"{name} was tuned for another model (sha256 {self.base_sha256[:12]}, "
                f"this one is {digest[:12]})",
                "give the run that it was tuned for, with the same `weights`",
            )


class PromptedGPT(Module):
    """A frozen GPT that reads P learned vectors before every text: ids (B, T) -> (B, T, V).

    The vectors have no positions added; the text keeps positions 0 ... T - 1, on which the model
    was trained, and the whole block_size. The base is not among `parameters()`, stays in
    evaluation mode, and its arrays are read-only, so that an attempt to train it raises. Raises
    InputError for vectors of another width than the model's.
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
        """Start a prompt from the vectors of `length` tokens drawn at random.

        Lester et al. 2021, section 3.2, "sampled vocabulary". Raises InputError for a length that
        is not from 1 to 4,096.
        """
        if not 1 <= length <= LONGEST_PROMPT:
            raise InputError(f"a prompt of {length} vectors", f"give 1 to {LONGEST_PROMPT}")
        rng = np.random.default_rng([seed, 2])
        rows = rng.integers(base.config.vocab_size, size=length)
        return cls(base, base.wte.weight.data[rows])

    @classmethod
    def load(cls, base: GPT, path: str | Path) -> PromptedGPT:
        """Load a prompt for the model that it was tuned for; InputError for another model."""
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
        """Return the mean cross-entropy in nats per target of the text."""
        return ops.cross_entropy(self.forward(ids), targets, ignore_index=IGNORE)

    def new_cache(self) -> Cache:
        """Make an empty cache with room for the prompt and a whole context."""
        return self.base.new_cache(self.length)

    def load_tensors(self, tensors: Mapping[str, Any]) -> None:
        """Load the prompt's vectors from {"prompt": (P, C)}."""
        self.load_state_dict(tensors)


def freeze(model: GPT) -> GPT:
    """Freeze a model's weights: no gradient, no dropout, read-only arrays. Returns the model."""
    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad = False
        parameter.data.flags.writeable = False
    return model


def _malformed(path: str | Path, fault: str) -> InputError:
    return InputError(f"{path} is not a soft prompt: {fault}", "use a file of prompt tuning")
