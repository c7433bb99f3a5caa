"""AdamW with decoupled weight decay (Loshchilov & Hutter 2019) on one flat buffer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinygrad_tf.errors import InputError
from tinygrad_tf.nn.module import Module, Parameter
from tinygrad_tf.types import Array

# Entries that one chain of passes updates at a time, so that they stay in the cache.
BLOCK = 1 << 15


class AdamW:
    """Adam whose weight decay shrinks the weights themselves, and not vectors of gain or bias.

    params: a Module, or named or listed parameters. Their data become parts of one array,
    matrices first (decayed), vectors after (not decayed), so that a step is a few long passes.
    lr is the step size, betas the memory of both moments, eps keeps the quotient finite.
    """

    def __init__(
        self,
        params: Module | Mapping[str, Parameter] | Sequence[Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        if isinstance(params, Module):
            params = params.named_parameters()
        elif not isinstance(params, Mapping):
            params = {str(i): p for i, p in enumerate(params)}
        if not params:
            raise InputError("there are no parameters to learn", "give a model's parameters()")
        for name, value in (("lr", lr), ("eps", eps), ("weight_decay", weight_decay)):
            if not 0.0 <= value < math.inf:
                raise InputError(f"{name} is {value}", "give a finite number of at least 0")
        if not all(0.0 <= beta < 1.0 for beta in betas):
            raise InputError(f"betas are {betas}", "give two numbers from 0 up to below 1")
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.steps = 0
        # Every parameter is in exactly one group, once: decayed if it is a matrix.
        decayed: dict[str, Parameter] = {}
        kept: dict[str, Parameter] = {}
        seen: set[int] = set()
        for name, p in params.items():
            if id(p) not in seen:
                seen.add(id(p))
                (decayed if p.ndim >= 2 else kept)[name] = p
        self.params = decayed | kept
        self.decayed_size = sum(p.size for p in decayed.values())
        dtypes = {str(p.dtype) for p in self.params.values()}
        if len(dtypes) > 1:
            raise InputError(
                f"the parameters are of different dtypes: {', '.join(sorted(dtypes))}",
                "make them all float32",
            )
        self._weights = np.concatenate([p.data.reshape(-1) for p in self.params.values()])
        self._gradient = np.zeros_like(self._weights)
        self._m = np.zeros_like(self._weights)
        self._v = np.zeros_like(self._weights)
        for name, view in self._views(self._weights).items():
            self.params[name].data = view

    def _views(self, flat: Array) -> dict[str, Array]:
        """A flat array's parts, by parameter."""
        views, start = {}, 0
        for name, p in self.params.items():
            views[name] = flat[start : start + p.size].reshape(p.shape)
            start += p.size
        return views

    def zero_grad(self) -> None:
        """Forget the gradients that `backward()` collected."""
        for p in self.params.values():
            p.grad = None

    def step(
        self, gradients: Mapping[str, Any] | None = None, *, max_norm: float | None = None
    ) -> float:
        """Move every parameter once; returns the gradient's global norm before clipping.

        gradients: by name, as `grad` returns them; by default each parameter's `.grad`, which
        counts as 0 where there is none. max_norm: the whole gradient is scaled down to this norm
        if it is longer. A norm that is not finite changes nothing.
        """
        missing = [] if gradients is None else [n for n in self.params if n not in gradients]
        if missing:
            raise InputError(
                f"there is no gradient for {', '.join(missing[:3])}",
                "give those of all parameters, by their names",
            )
        for name, view in self._views(self._gradient).items():
            given = self.params[name].grad if gradients is None else gradients[name]
            view[...] = 0.0 if given is None else given
        norm = math.sqrt(float(np.dot(self._gradient, self._gradient)))
        if not math.isfinite(norm):
            return norm
        scale = 1.0 if max_norm is None or norm <= max_norm else max_norm / norm
        self.steps += 1
        work = np.empty(min(BLOCK, self._weights.size), self._weights.dtype)
        for start, end, decay in self._blocks():
            self._update(slice(start, end), scale, 1.0 - self.lr * decay, work[: end - start])
        return norm

    def _blocks(self) -> list[tuple[int, int, float]]:
        """Cache-sized pieces that do not straddle the two groups: start, end, weight decay."""
        groups = (
            (0, self.decayed_size, self.weight_decay),
            (self.decayed_size, self._weights.size, 0.0),
        )
        return [
            (start, min(start + BLOCK, end), decay)
            for begin, end, decay in groups
            for start in range(begin, end, BLOCK)
        ]

    def _update(self, part: slice, scale: float, shrink: float, work: Array) -> None:
        beta1, beta2 = self.betas
        w, g, m, v = (a[part] for a in (self._weights, self._gradient, self._m, self._v))
        if scale != 1.0:
            g *= scale
        m *= beta1
        np.multiply(g, 1.0 - beta1, out=work)
        m += work
        v *= beta2
        np.square(g, out=work)
        work *= 1.0 - beta2
        v += work
        np.sqrt(v, out=work)
        work *= 1.0 / math.sqrt(1.0 - beta2**self.steps)
        work += self.eps
        np.divide(m, work, out=work)
        work *= self.lr / (1.0 - beta1**self.steps)
        if shrink != 1.0:
            w *= shrink
        w -= work

    def state_dict(self) -> dict[str, Array]:
        """Both moments as `m.<name>` and `v.<name>`; the count of steps is `steps`."""
        state = {f"m.{name}": view for name, view in self._views(self._m).items()}
        return state | {f"v.{name}": view for name, view in self._views(self._v).items()}

    def load_state_dict(self, state: Mapping[str, Any], steps: int) -> None:
        """The reverse of `state_dict`; raises InputError for what is missing or misshapen."""
        own = self.state_dict()
        wrong = [n for n in own if n not in state or np.shape(state[n]) != own[n].shape]
        if wrong or len(state) != len(own):
            raise InputError(
                f"this optimizer state does not fit the model: {', '.join(wrong) or 'extra keys'}",
                "resume with the options of the first run",
            )
        for name, view in own.items():
            view[...] = state[name]
        self.steps = steps
