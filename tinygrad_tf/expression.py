"""Expressions such as "tanh(w*x + b)": parsed by a grammar of their own, never run as Python.

    expression = parse("tanh(w*x + b)")
    result, leaves = expression.evaluate({"w": 2, "x": -1, "b": 0.5})
    result.backward()
    leaves["w"].grad

The precedence is Python's: + and - bind least, then * and /, then the sign, and ** (from the
right) most. Neither parsing nor evaluating is recursive, so parentheses may nest to any depth.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
# The precedence of each, and its function.
BINARY: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "+": (1, operator.add),
    "-": (1, operator.sub),
    "*": (2, operator.mul),
    "/": (2, operator.truediv),
    "**": (4, operator.pow),
}
SIGN = 3  # -x**2 is -(x**2)
OPEN = 0  # of a parenthesis

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<call>[^\W\d]\w*)\s*\(|(?P<name>[^\W\d]\w*)"
    r"|(?P<symbol>\*\*|[-+*/(),])|(?P<space>\s+)|(?P<other>.)"
)


@dataclass(frozen=True)
class Token:
    """A piece of the text: its kind, its characters, and the columns (from 1) of its two ends.

    A name before a parenthesis is one token of kind "call", which ends at the parenthesis.
    """

    kind: str
    text: str
    column: int
    end: int


@dataclass(frozen=True)
class Instruction:
    """An instruction of a stack machine: push a number or a variable, or apply an operation.

    `name` is the variable or the operation; `apply` takes `arity` operands from the stack.
    """

    name: str
    column: int
    number: float | None = None
    arity: int = 0
    apply: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Expression:
    """A parsed text: its instructions, operands first, and its variables as they appear."""

    text: str
    instructions: tuple[Instruction, ...] = field(repr=False)
    names: tuple[str, ...]

    def evaluate(self, values: Mapping[str, float]) -> tuple[Value, dict[str, Value]]:
        """Compute the result; return it with the leaf of each variable.

        Raises InputError for a missing, unused or infinite value, and with the column where a
        result is not a finite real number.
        """
        self._check(values)
        leaves = {name: Value(values[name]) for name in self.names}
        stack: list[Value | float] = []
        for step in self.instructions:
            if step.apply is None:
                stack.append(leaves[step.name] if step.number is None else step.number)
                continue
            operands = stack[-step.arity :]
            del stack[-step.arity :]
            stack.append(_apply(step, operands))
        result = stack.pop()
        return result if isinstance(result, Value) else Value(result), leaves

    def _check(self, values: Mapping[str, float]) -> None:
        missing = [name for name in self.names if name not in values]
        unused = sorted(values.keys() - set(self.names))
        if missing and unused:
            near = difflib.get_close_matches(missing[0], unused, 1, 0.0)
            raise InputError(
                f"no value for {', '.join(missing)}, but {unused[0]} is not in the expression",
                f"write {missing[0]} for {near[0]}",
            )
        if missing:
            raise InputError(f"no value for {', '.join(missing)}", f"add {missing[0]}=1")
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


def _apply(step: Instruction, operands: list[Value | float]) -> Value | float:
    """Apply one operation; of plain numbers alone, the result is a plain number."""
    assert step.apply is not None
    first, *rest = operands
    constant = not any(isinstance(x, Value) for x in operands)
    if not isinstance(first, Value):
        if constant:
            operands = [Value(first), *rest]
        elif step.name in FUNCTIONS:
            operands = operands[::-1]  # max(2, x), which is a method of x
    try:
        result: Value = step.apply(*operands)
    except InputError as error:
        raise InputError(f"{error.what} (at column {step.column})", error.next) from None
    if not math.isfinite(result.data):
        raise InputError(
            f"the result of {step.name} at column {step.column} is not finite: {result.data}",
            "choose smaller values" if math.isinf(result.data) else "",
        )
    return result.data if constant else result


def parse(text: str) -> Expression:
    """Parse an expression; raises InputError with the column and the remedy."""
    if len(text) > LONGEST:
        raise InputError(
            f"the expression has {len(text):,} characters; at most {LONGEST:,} are allowed"
        )
    tokens = list(_tokens(text))
    if not tokens:
        raise InputError("the expression is empty", 'write one such as "tanh(w*x + b)"')
    instructions = tuple(_Parser().run(tokens))
    names = dict.fromkeys(s.name for s in instructions if s.apply is None and s.number is None)
    return Expression(text, instructions, tuple(names))


def assignments(pairs: Iterable[str]) -> dict[str, float]:
    """Read values by name from texts such as "w=2"; raises InputError for any other text."""
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
        kind = str(match.lastgroup)
        token = Token(kind, match.group(kind), match.start() + 1, match.end())
        if kind == "other":
            hint = {"^": "write ** for a power", "=": "give values after the expression"}
            raise InputError(
                f"{token.text!r} at column {token.column} means nothing here",
                hint.get(token.text, f"use + - * / ** ( ) and {', '.join(FUNCTIONS)}"),
            )
        if kind != "space":
            yield token


@dataclass
class _Pending:
    """An operator, a function or a parenthesis whose right operand is not complete yet."""

    instruction: Instruction
    precedence: int
    parenthesis: int = 0  # its column
    commas: int = 0


class _Parser:
    """Dijkstra's shunting yard: an operator waits on a stack until one of lower precedence comes.

    `output` holds the instructions so far; `after_operand` is true where an operand just ended.
    """

    def __init__(self) -> None:
        self.output: list[Instruction] = []
        self.stack: list[_Pending] = []
        self.after_operand = False

    def run(self, tokens: Sequence[Token]) -> list[Instruction]:
        """Return the instructions of the whole expression."""
        for token in tokens:
            if self.after_operand:
                self._operator(token)
            else:
                self._operand(token)
        if not self.after_operand:
            last = tokens[-1]
            text, column = ("(", last.end) if last.kind == "call" else (last.text, last.column)
            raise InputError(f"the expression ends after {text!r} at column {column}")
        self._reduce(OPEN)
        if self.stack:
            column = self.stack[-1].parenthesis
            raise InputError(f"the parenthesis at column {column} is not closed", "add )")
        return self.output

    def _operand(self, token: Token) -> None:
        """Read a token where an operand begins."""
        if token.kind in ("number", "name"):
            self.output.append(_push(token))
            self.after_operand = True
        elif token.kind == "call":
            self.stack.append(_Pending(_call(token), OPEN, token.end))
        elif token.text == "(":
            self.stack.append(_Pending(Instruction("(", token.column), OPEN, token.column))
        elif token.text == "-":
            self.stack.append(_Pending(_operation(token, 1, operator.neg), SIGN))
        elif token.text != "+":
            raise InputError(
                f"a number, a name or a parenthesis is missing before {token.text!r} "
                f"at column {token.column}"
            )

    def _operator(self, token: Token) -> None:
        """Read a token after an operand."""
        if token.text in BINARY:
            precedence, apply = BINARY[token.text]
            self._reduce(precedence + 1 if token.text == "**" else precedence)
            self.stack.append(_Pending(_operation(token, 2, apply), precedence))
            self.after_operand = False
        elif token.text == ",":
            self._comma(token)
        elif token.text == ")":
            self._close(token)
        else:
            raise InputError(
                f"an operator is missing before {token.text!r} at column {token.column}",
                f"write * before {token.text}",
            )

    def _reduce(self, precedence: int) -> None:
        """Output the operators of at least this precedence, up to the innermost parenthesis."""
        while self.stack and self.stack[-1].precedence >= max(precedence, 1):
            self.output.append(self.stack.pop().instruction)

    def _comma(self, token: Token) -> None:
        self._reduce(OPEN)
        if not self.stack or self.stack[-1].instruction.apply is None:
            raise InputError(
                f"the comma at column {token.column} is in no function", "write 0.5, not 0,5"
            )
        self.stack[-1].commas += 1
        self.after_operand = False

    def _close(self, token: Token) -> None:
        self._reduce(OPEN)
        if not self.stack:
            raise InputError(f"the ) at column {token.column} closes nothing", "leave it out")
        inner = self.stack.pop()
        function = inner.instruction
        if function.apply is None:
            return
        if inner.commas + 1 != function.arity:
            raise InputError(
                f"{function.name} at column {function.column} takes {function.arity} "
                f"operand{'s'[: function.arity - 1]}, not {inner.commas + 1}"
            )
        self.output.append(function)


def _push(token: Token) -> Instruction:
    if token.kind == "name":
        if token.text in FUNCTIONS:
            raise InputError(
                f"{token.text} at column {token.column} is a function", f"write {token.text}(...)"
            )
        return Instruction(token.text, token.column)
    number = float(token.text)
    if not math.isfinite(number):
        raise InputError(f"{token.text} at column {token.column} is too large a number")
    return Instruction(token.text, token.column, number)


def _call(token: Token) -> Instruction:
    if token.text not in FUNCTIONS:
        near = difflib.get_close_matches(token.text, FUNCTIONS, 1)
        raise InputError(
            f"there is no function {token.text} (column {token.column})",
            f"did you mean {near[0]}?" if near else f"there are {', '.join(FUNCTIONS)}",
        )
    return _operation(token, *FUNCTIONS[token.text])


def _operation(token: Token, arity: int, apply: Callable[..., Any]) -> Instruction:
    return Instruction(token.text, token.column, None, arity, apply)


@dataclass(frozen=True)
class NumericSlope:
    """A derivative measured by differences, beside which a gradient can be checked.

    `value` is None where the function has no value on either side. `error` bounds the error of
    the difference itself. Where the slopes to the left and to the right differ, the function has
    a kink, `kink` holds both, and neither is the right one.
    """

    value: float | None
    error: float = 0.0
    kink: tuple[float, float] | None = None

    def agrees(self, gradient: float) -> bool | None:
        """True where the gradient is within `error`; None where differences cannot decide."""
        if self.value is None or self.kink is not None or not math.isfinite(gradient):
            return None
        return abs(gradient - self.value) <= self.error


def numeric_slope(expression: Expression, values: Mapping[str, float], name: str) -> NumericSlope:
    """Measure the slope in `name` by central differences, with the step of the smallest error."""
    x = float(values[name])

    def at(place: float) -> float:
        return expression.evaluate({**values, name: place})[0].data

    best = NumericSlope(None, math.inf)
    for scale in (1.0, 1e2, 1e4, 1e-2, 1e-4, 1e-6):
        try:
            slope = _differences(at, x, scale * 6e-6 * max(1.0, abs(x)))
        except InputError:
            continue  # too near the edge of the domain
        if slope.error < best.error:
            best = slope
        # A kink may only lie near: smaller steps can leave it out.
        if not best.kink and best.error <= 3e-6 * abs(best.value or 0.0):
            break
    return best


def _differences(at: Callable[[float], float], x: float, step: float) -> NumericSlope:
    """Central differences with two steps, extrapolated; their distance is the error."""
    if x - step / 2 == x or x + step / 2 == x:
        return NumericSlope(None, math.inf)
    here = at(x)

    def slopes(h: float) -> tuple[float, float, float, float]:
        """The slopes from the left, from the right and across, and the largest value."""
        low, high = x - h, x + h
        below, above = at(low), at(high)
        across = (above - below) / (high - low)
        largest = max(abs(below), abs(here), abs(above))
        return (here - below) / (x - low), (above - here) / (high - x), across, largest

    far_left, far_right, coarse, largest = slopes(step)
    left, right, fine, _ = slopes(step / 2)
    rounding = 16 * EPSILON * largest / step
    error = abs(coarse - fine) + rounding + 1e-7 * abs(fine) + 1e-12
    # A bend makes the two sides differ by step * y'', which halves with the step; a kink does not.
    gap, far_gap = abs(right - left), abs(far_right - far_left)
    if gap > 100 * error + 1e-4 * abs(fine) and gap > 0.9 * far_gap:
        return NumericSlope(fine, error, (left, right))
    return NumericSlope(fine + (fine - coarse) / 3, error)
