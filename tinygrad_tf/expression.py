"""Expressions such as "tanh(w*x + b)": read by a grammar of our own, never run as Python.

    expression = parse("tanh(w*x + b)")
    result, leaves = expression.evaluate({"w": 2, "x": -1, "b": 0.5})
    result.backward()
    leaves["w"].grad

Python's precedence: + and - bind least, then * and /, the sign, and ** (from the right) most.
Neither reading nor evaluating recurses, so parentheses may be nested to any depth.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tinygrad_tf.errors import InputError
from tinygrad_tf.scalar import Value

LONGEST = 20_000  # characters
EPSILON = 2.0**-52

FUNCTIONS: dict[str, tuple[int, Callable[..., Value]]] = {
    "exp": (1, Value.exp),
    "log": (1, Value.log),
    "sin": (1, Value.sin),
    "cos": (1, Value.cos),
    "tanh": (1, Value.tanh),
    "sigmoid": (1, Value.sigmoid),
    "relu": (1, Value.relu),
    "max": (2, Value.max),
}
# How tightly each binds, and what it does.
BINARY: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "+": (1, operator.add),
    "-": (1, operator.sub),
    "*": (2, operator.mul),
    "/": (2, operator.truediv),
    "**": (4, operator.pow),
}
SIGN = 3  # -x**2 is -(x**2)
OPEN = 0

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)|(?P<symbol>\*\*|[-+*/(),])|(?P<space>\s+)|(?P<other>.)"
)


@dataclass(frozen=True)
class Token:
    """A piece of the text: its kind, its characters, and the column (from 1) where it begins."""

    kind: str
    text: str
    column: int


@dataclass(frozen=True)
class Step:
    """One step of a calculation on a stack: push a number or a name, or apply to the top."""

    what: str
    column: int
    number: float | None = None
    arity: int = 0
    apply: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Expression:
    """A text that was understood: its steps, operands first, and its names as they appear."""

    text: str
    steps: tuple[Step, ...]
    names: tuple[str, ...]

    def evaluate(self, values: Mapping[str, float]) -> tuple[Value, dict[str, Value]]:
        """The result, and the leaf of each name.

        Raises InputError for a missing, superfluous or infinite value, and naming the column
        where a result is not a finite real number.
        """
        self._check(values)
        leaves = {name: Value(values[name]) for name in self.names}
        stack: list[Value | float] = []
        for step in self.steps:
            if step.apply is None:
                stack.append(leaves[step.what] if step.number is None else step.number)
                continue
            operands = stack[-step.arity :]
            del stack[-step.arity :]
            stack.append(_apply(step, operands))
        result = stack.pop()
        return result if isinstance(result, Value) else Value(result), leaves

    def _check(self, values: Mapping[str, float]) -> None:
        missing = [name for name in self.names if name not in values]
        unused = sorted(values.keys() - set(self.names))
        if missing:
            near = difflib.get_close_matches(missing[0], unused, 1, 0.0) or [missing[0]]
            told = f", but {unused[0]} is not in the expression" if unused else ""
            raise InputError(
                f"no value for {', '.join(missing)}{told}",
                f"write {missing[0]} for {near[0]}" if unused else f"add {missing[0]}=1",
            )
        if unused:
            near = difflib.get_close_matches(unused[0], self.names, 1)
            raise InputError(
                f"{', '.join(unused)} is not in the expression, which has "
                f"{', '.join(self.names) or 'no names'}",
                f"did you mean {near[0]}?" if near else f"leave out {unused[0]}",
            )
        for name, value in values.items():
            if not math.isfinite(value):
                raise InputError(f"{name} = {value} is not a finite number")


def _apply(step: Step, operands: list[Value | float]) -> Value | float:
    """Do one step; of plain numbers alone, the result is a plain number."""
    assert step.apply is not None
    first, *rest = operands
    constant = not any(isinstance(x, Value) for x in operands)
    if not isinstance(first, Value):
        if constant:
            operands = [Value(first), *rest]
        elif step.what in FUNCTIONS:  # max(2, x), which is a method of x
            operands = operands[::-1]
    try:
        result: Value = step.apply(*operands)
    except InputError as error:
        raise InputError(f"{error.what} (at column {step.column})", error.next) from None
    if not math.isfinite(result.data):
        raise InputError(
            f"the result of {step.what} at column {step.column} is not finite: {result.data}",
            "choose smaller values" if math.isinf(result.data) else "",
        )
    return result.data if constant else result


def parse(text: str) -> Expression:
    """Understand an expression, or raise InputError that names the column and the remedy."""
    if len(text) > LONGEST:
        raise InputError(f"the expression has {len(text):,} characters; at most {LONGEST:,} go")
    tokens = list(_tokens(text))
    if not tokens:
        raise InputError("the expression is empty", 'write one such as "tanh(w*x + b)"')
    steps = tuple(_Parser(tokens).run())
    names = dict.fromkeys(s.what for s in steps if s.apply is None and s.number is None)
    return Expression(text, steps, tuple(names))


def assignments(pairs: Iterable[str]) -> dict[str, float]:
    """Values by name from texts such as "w=2"; raises InputError for what is none."""
    values: dict[str, float] = {}
    for pair in pairs:
        name, equals, number = (part.strip() for part in pair.partition("="))
        if not equals or not name:
            raise InputError(f"{pair!r} gives no name a value", "write w=2")
        if name in values:
            raise InputError(f"{name} is given twice", "give each name one value")
        try:
            values[name] = float(number)
        except ValueError:
            raise InputError(f"{number!r} is not a number", f"write {name}=2") from None
    return values


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text.replace("\n", " ")):
        kind, column = str(match.lastgroup), match.start() + 1
        if kind == "other":
            hint = {"^": "write ** for a power", "=": "give values after the expression"}
            raise InputError(
                f"{match.group()!r} at column {column} means nothing here",
                hint.get(match.group(), f"use + - * / ** ( ) and {', '.join(FUNCTIONS)}"),
            )
        if kind != "space":
            yield Token(kind, match.group(), column)


@dataclass(frozen=True)
class _Waiting:
    """An operator, a function or a parenthesis that waits for what stands to its right."""

    step: Step
    binds: int
    opened: int = 0  # the column of the parenthesis
    commas: int = 0


class _Parser:
    """Dijkstra's shunting yard: operators wait on a stack until one that binds less comes by."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.done: list[Step] = []
        self.waiting: list[_Waiting] = []
        self.after = False  # whether an operand has just ended

    def run(self) -> list[Step]:
        """The steps of the whole expression."""
        position = 0
        while position < len(self.tokens):
            token = self.tokens[position]
            position += 1
            if self.after:
                self._operator(token)
            elif token.kind == "number":
                self._push(token, _literal(token))
            elif token.kind == "name":
                follows = self.tokens[position : position + 1]
                if follows and follows[0].text == "(":
                    self._open(follows[0], token)
                    position += 1
                else:
                    self._name(token)
            else:
                self._prefix(token)
        if not self.after:
            last = self.tokens[-1]
            raise InputError(f"the expression ends after {last.text!r} at column {last.column}")
        self._release(OPEN)
        if self.waiting:
            column = self.waiting[-1].opened
            raise InputError(f"the parenthesis at column {column} is not closed", "add )")
        return self.done

    def _push(self, token: Token, number: float | None) -> None:
        self.done.append(Step(token.text, token.column, number))
        self.after = True

    def _name(self, token: Token) -> None:
        if token.text in FUNCTIONS:
            raise InputError(
                f"{token.text} at column {token.column} is a function", f"write {token.text}(...)"
            )
        self._push(token, None)

    def _open(self, parenthesis: Token, function: Token | None) -> None:
        step = Step("(", parenthesis.column)
        if function is not None:
            if function.text not in FUNCTIONS:
                near = difflib.get_close_matches(function.text, FUNCTIONS, 1)
                raise InputError(
                    f"there is no function {function.text} (column {function.column})",
                    f"did you mean {near[0]}?" if near else f"there are {', '.join(FUNCTIONS)}",
                )
            arity, apply = FUNCTIONS[function.text]
            step = Step(function.text, function.column, None, arity, apply)
        self.waiting.append(_Waiting(step, OPEN, parenthesis.column))

    def _prefix(self, token: Token) -> None:
        if token.text == "(":
            self._open(token, None)
        elif token.text in ("+", "-"):
            if token.text == "-":
                step = Step("-", token.column, None, 1, operator.neg)
                self.waiting.append(_Waiting(step, SIGN))
        else:
            raise InputError(
                f"a number, a name or a parenthesis is missing before {token.text!r} "
                f"at column {token.column}"
            )

    def _operator(self, token: Token) -> None:
        if token.text in BINARY:
            binds, apply = BINARY[token.text]
            self._release(binds + 1 if token.text == "**" else binds)
            self.waiting.append(_Waiting(Step(token.text, token.column, None, 2, apply), binds))
            self.after = False
        elif token.text == ",":
            self._comma(token)
        elif token.text == ")":
            self._close(token)
        else:
            hint = f"write * before {token.text}" if self.done else ""
            raise InputError(
                f"an operator is missing before {token.text!r} at column {token.column}", hint
            )

    def _release(self, binds: int) -> None:
        """Let go all that binds at least so tightly, down to the innermost parenthesis."""
        while self.waiting and self.waiting[-1].binds >= max(binds, 1):
            self.done.append(self.waiting.pop().step)

    def _comma(self, token: Token) -> None:
        self._release(OPEN)
        if not self.waiting or self.waiting[-1].step.apply is None:
            raise InputError(
                f"the comma at column {token.column} stands in no function", "write 0.5, not 0,5"
            )
        inner = self.waiting.pop()
        self.waiting.append(replace(inner, commas=inner.commas + 1))
        self.after = False

    def _close(self, token: Token) -> None:
        self._release(OPEN)
        if not self.waiting:
            raise InputError(f"the ) at column {token.column} closes nothing", "leave it out")
        inner = self.waiting.pop()
        if inner.step.apply is None:
            return
        if inner.commas + 1 != inner.step.arity:
            raise InputError(
                f"{inner.step.what} at column {inner.step.column} takes {inner.step.arity} "
                f"operand{'s'[: inner.step.arity - 1]}, not {inner.commas + 1}"
            )
        self.done.append(inner.step)


def _literal(token: Token) -> float:
    number = float(token.text)
    if not math.isfinite(number):
        raise InputError(f"{token.text} at column {token.column} is too large a number")
    return number


@dataclass(frozen=True)
class Check:
    """What differences say about one gradient.

    `numeric` is None where the function has no value on either side. `error` is what the
    difference itself may be off by. Where the slopes to the left and to the right differ, the
    function has a kink, and no slope is the right one.
    """

    numeric: float | None
    error: float = 0.0
    kink: tuple[float, float] | None = None

    def agrees(self, gradient: float) -> bool | None:
        """Whether the gradient is what differences say; None where they cannot tell."""
        if self.numeric is None or self.kink is not None or not math.isfinite(gradient):
            return None
        return abs(gradient - self.numeric) <= self.error


def check(expression: Expression, values: Mapping[str, float], name: str) -> Check:
    """The slope in `name` by central differences, with the step size that errs least."""
    x = float(values[name])

    def at(place: float) -> float:
        return expression.evaluate({**values, name: place})[0].data

    best = Check(None, math.inf)
    for scale in (1.0, 1e2, 1e4, 1e-2, 1e-4, 1e-6):
        try:
            found = _differences(at, x, scale * 6e-6 * max(1.0, abs(x)))
        except InputError:
            continue  # too near the edge of where there is a value
        if found.error < best.error:
            best = found
        # A kink may only lie near: nearer steps can leave it out.
        if not best.kink and best.error <= 3e-6 * abs(best.numeric or 0.0):
            break
    return best


def _differences(at: Callable[[float], float], x: float, step: float) -> Check:
    """Central differences of two step sizes, extrapolated; their disagreement is the error."""
    wide_left, left, right, wide_right = x - step, x - step / 2, x + step / 2, x + step
    if left == x or right == x:
        return Check(None, math.inf)
    here, far = at(x), (at(wide_left), at(wide_right))
    near = at(left), at(right)
    coarse = (far[1] - far[0]) / (wide_right - wide_left)
    fine = (near[1] - near[0]) / (right - left)
    rounding = 16 * EPSILON * max(abs(here), abs(far[0]), abs(far[1])) / step
    error = abs(coarse - fine) + rounding + 1e-7 * abs(fine) + 1e-12
    # A bend makes the two sides differ by step * y'', which halves with the step; a kink does not.
    bend = abs((near[1] - here) / (right - x) - (here - near[0]) / (x - left))
    wide_bend = abs((far[1] - here) / (wide_right - x) - (here - far[0]) / (x - wide_left))
    if bend > 100 * error + 1e-4 * abs(fine) and bend > 0.9 * wide_bend:
        sides = (here - near[0]) / (x - left), (near[1] - here) / (right - x)
        return Check(fine, error, sides)
    return Check(fine + (fine - coarse) / 3, error)
