"""Module and Parameter: the parameters of a model by the names of its attributes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Self

import numpy as np

from tinygrad_tf.engine.tensor import Tensor
from tinygrad_tf.errors import InputError
from tinygrad_tf.types import Array

_substituting = threading.RLock()


class Parameter(Tensor):
    """A Tensor that is learned: it requires a gradient, and modules list it by name."""

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        super().__init__(data, requires_grad)

    def __repr__(self) -> str:
        frozen = "" if self.requires_grad else ", frozen"
        return f"Parameter(shape={self.shape}, dtype={self.dtype}{frozen})"


class Module:
    """A part of a model; its attributes are its Parameters, Modules and lists of Modules.

    Printed, it is the tree of its parts, with shapes and the numbers of parameters.
    """

    training = True

    def __repr__(self) -> str:
        parts = list(self._children())
        shapes = ", ".join(f"{n} {p.shape}" for n, p in parts if isinstance(p, Parameter))
        counted = f"{self.parameter_count():,} parameters"
        modules = [(n, m) for n, m in parts if isinstance(m, Module) and m.parameter_count()]
        details = [part for part in (self.summary(), counted if modules else shapes) if part]
        lines = [f"{type(self).__name__}({'; '.join(details)})"]
        texts = [(name, repr(module).replace("\n", "\n  ")) for name, module in modules]
        for text, same in groupby(texts, key=lambda pair: pair[1]):
            names = [name for name, _ in same]
            more = "" if len(names) == 1 else f" ... {names[-1]}"
            lines.append(f"  {names[0]}{more}: {text}")
        return "\n".join(lines)

    def summary(self) -> str:
        """Return what `repr` says of the module besides its parameters; by default nothing."""
        return ""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's output; calling the module calls this."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def _children(self) -> Iterator[tuple[str, Parameter | Module]]:
        for name, value in vars(self).items():
            if isinstance(value, Parameter | Module):
                yield name, value
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, Parameter | Module):
                        yield f"{name}.{i}", item

    def modules(self) -> Iterator[Module]:
        """Yield this module and all below it."""
        yield self
        for _, child in self._children():
            if isinstance(child, Module):
                yield from child.modules()

    def named_parameters(self) -> dict[str, Parameter]:
        """Return every parameter once, by its dotted name; a shared one has its first name."""
        named: dict[str, Parameter] = {}
        seen: set[int] = set()
        for name, parameter in self._walk(""):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                named[name] = parameter
        return named

    def _walk(self, prefix: str) -> Iterator[tuple[str, Parameter]]:
        for name, child in self._children():
            if isinstance(child, Module):
                yield from child._walk(f"{prefix}{name}.")
            else:
                yield prefix + name, child

    def parameters(self) -> list[Parameter]:
        """Return every parameter once."""
        return list(self.named_parameters().values())

    def parameter_count(self) -> int:
        """Count the numbers that are learned."""
        return sum(p.size for p in self.parameters())

    @contextmanager
    def substituted(self, parameters: Mapping[str, Any]) -> Iterator[None]:
        """Replace the named parameters by these Tensors within this context.

        So a loss becomes a function of the parameters, to be differentiated to any order:

            def loss(p):
                with model.substituted(p):
                    return model.loss(ids, targets)

            hvp(loss, [model.named_parameters()], [directions])

        Only one thread at a time may do so, and other threads that use the module meanwhile see
        these Tensors too. Raises InputError for an unknown name or another shape.
        """
        with _substituting:
            yield from self._substituted(parameters)

    def _substituted(self, parameters: Mapping[str, Any]) -> Iterator[None]:
        own = self.named_parameters()
        for name, value in parameters.items():
            if name not in own or np.shape(value) != own[name].shape:
                known = f"of shape {own[name].shape}" if name in own else "no parameter"
                raise InputError(
                    f"{name} is {known} in {type(self).__name__}, not {np.shape(value)}",
                    "see named_parameters()",
                )
        new = {id(own[name]): _as_tensor(value) for name, value in parameters.items()}
        places = [
            (place, key, child)
            for module in self.modules()
            for place, key, child in _slots(module)
            if id(child) in new
        ]
        try:
            for place, key, child in places:
                place[key] = new[id(child)]
            yield
        finally:
            for place, key, child in places:
                place[key] = child

    def train(self, mode: bool = True) -> Module:
        """Switch dropout on, here and below."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """Switch dropout off, here and below."""
        return self.train(False)

    def astype(self, dtype: Any) -> Self:
        """Change every parameter to another dtype, in place; float64 is for checking gradients."""
        for parameter in self.parameters():
            parameter.data = parameter.data.astype(dtype)
            parameter.node = None
            parameter.requires_grad = True
        return self

    def zero_grad(self) -> None:
        """Remove the gradients that `backward()` collected."""
        for parameter in self.parameters():
            parameter.grad = None

    def state_dict(self) -> dict[str, Array]:
        """Return a copy of every parameter by name."""
        return {name: p.data.copy() for name, p in self.named_parameters().items()}

    def file_tensors(self) -> dict[str, Array]:
        """Return the arrays to write to a file, by their names there."""
        return {name: p.data for name, p in self.named_parameters().items()}

    def load_tensors(self, tensors: Mapping[str, Any]) -> None:
        """Load the arrays of a file into the parameters; the reverse of `file_tensors`."""
        self.load_state_dict(tensors)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Copy values into the parameters; raises InputError naming every key that does not fit."""
        own = self.named_parameters()
        problems = [f"missing {name}" for name in own if name not in state]
        problems += [f"unexpected {name}" for name in state if name not in own]
        problems += [
            f"{name} has shape {np.shape(state[name])} where {p.shape} is needed"
            for name, p in own.items()
            if name in state and np.shape(state[name]) != p.shape
        ]
        if problems:
            raise InputError(
                f"these weights do not fit {type(self).__name__}: {', '.join(problems)}",
                "load them into a model of the same configuration",
            )
        for name, parameter in own.items():
            parameter.data[...] = state[name]


def _slots(module: Module) -> Iterator[tuple[Any, Any, Any]]:
    """Yield every place (container, key, value) where a module may keep a Parameter of its own."""
    for name, value in vars(module).items():
        yield vars(module), name, value
        if isinstance(value, list):
            for i, item in enumerate(value):
                yield value, i, item


def _as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else Tensor(x)
