"""Comparisons, arithmetic, and texts put together."""

from __future__ import annotations

# ruff: noqa: PLR0911, C901  # an interpreter has one way out for each kind of value
import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from mragaudit.hookaudit.interpreter.iteration import Iteration
from mragaudit.hookaudit.interpreter.machine import Spot
from mragaudit.hookaudit.interpreter.state import ELEMENT
from mragaudit.hookaudit.interpreter.values import (
    Bound,
    Changed,
    ClassRef,
    Const,
    Each,
    External,
    Func,
    Growing,
    ModuleRef,
    One,
    Opaque,
    Part,
    Partial,
    Ref,
    Same,
    Segment,
    Text,
    Tup,
    Value,
    View,
    describe,
    flags_of,
    is_subject,
)

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
NEUTRAL: dict[type[ast.operator], tuple[Any, bool]] = {  # the constant that changes nothing, and on either side
    ast.Add: (0, True),
    ast.Sub: (0, False),
    ast.Mult: (1, True),
    ast.Div: (1, False),
    ast.Pow: (1, False),
    ast.BitOr: (0, True),
    ast.BitXor: (0, True),
}
UNIT = "random number from 0 up to 1"
LONGEST_TEXT = 10_000


class Operators(Iteration):
    """What operators and f-strings give."""

    def _unary(self, node: ast.UnaryOp, spot: Spot) -> Value:
        value = self.evaluate(node.operand, spot)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value, node.operand, spot)
            if truth is not None:
                return Const(not truth, flags_of(value))
            return self.changed("a test of it", node, spot) if is_subject(value) else Opaque("a test", flags_of(value))
        if isinstance(value, Const) and isinstance(value.value, int | float):
            negative = isinstance(node.op, ast.USub)
            return Const(-value.value if negative else value.value, value.flags)
        if is_subject(value) and isinstance(node.op, ast.UAdd):
            return value
        return self._derived(f"`{describe(node)}`", [value], node=node, spot=spot)

    def _compare(self, node: ast.Compare, spot: Spot) -> Value:
        values = [self.evaluate(part, spot) for part in (node.left, *node.comparators)]
        if isinstance(values[0], Const) and isinstance(values[0].value, tuple):  # a version
            values = [self._as_constant(value, spot) for value in values]
        outcomes = [
            self._compare_two(left, right, operation=operation, node=node, spot=spot)
            for left, right, operation in zip(values, values[1:], node.ops, strict=False)
        ]
        if len(outcomes) == 1:
            return outcomes[0]
        flags = frozenset().union(*map(flags_of, outcomes))
        if any(isinstance(outcome, Const) and not outcome.value for outcome in outcomes):
            return Const(False, flags)
        if all(isinstance(outcome, Const) for outcome in outcomes):
            return Const(True, flags)
        return self._derived("a test of it", values, node=node, spot=spot)

    def _as_constant(self, value: Value, spot: Spot) -> Value:
        """Return a tuple of constants as a constant."""
        items = self.constants(value, spot) if isinstance(value, Tup) else None
        return value if items is None else Const(tuple(items), flags_of(value))

    def _compare_two(self, left: Value, right: Value, *, operation: ast.cmpop, node: ast.Compare, spot: Spot) -> Value:
        flags = flags_of(left) | flags_of(right)
        for key in flags & self.notes.settings.keys():
            self.notes.settings[key].compared = True
        if right == External("os.environ") and isinstance(operation, ast.In | ast.NotIn):
            text = describe(node)
            return self.setting(f"env:{text}", text, Const(isinstance(operation, ast.NotIn)))
        if isinstance(left, Const) and isinstance(right, Const):
            try:
                return Const(bool(COMPARE[type(operation)](left.value, right.value)), flags)
            except TypeError:
                return _compare_bits(left.value, right.value, operation, flags)
        members = self.constants(right, spot)
        if members is not None and isinstance(operation, ast.In | ast.NotIn):
            found = self._is_member(left, members, node=node, spot=spot)
            if found is not None:
                return Const(found is isinstance(operation, ast.In), flags)
        if isinstance(operation, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            equal = self._equal(left, right, spot)
            if equal is not None:
                return Const(equal is isinstance(operation, ast.Is | ast.Eq), flags)
        if isinstance(left, Opaque) and left.kind == UNIT and isinstance(right, Const):
            self.decide(flags, describe(node))
            return self._compare_unit(right, operation)
        if (finite := _compare_infinite(left, right, operation)) is not None:
            return Const(finite, flags)
        if isinstance(left, View) and left.how == "length" and isinstance(right, Const):
            return self._compare_length(right.value, operation)
        if any(isinstance(value, View) and value.how == "length" for value in (left, right)):
            return self.changed("a test of its length", node, spot)
        return self._derived("a test of it", [left, right], node=node, spot=spot)

    def _is_member(self, value: Value, members: list[Any], *, node: ast.Compare, spot: Spot) -> bool | None:
        """Return whether a value is among constants, where that can be told: a constant, or anything among none."""
        if isinstance(value, Const):
            return value.value in members
        return False if not members and not self._is_filled(node, spot) else None

    def _is_filled(self, node: ast.Compare, spot: Spot) -> bool:
        """Return whether a container that is empty now is one that some code puts something into: a cache."""
        names = {part.attr if isinstance(part, ast.Attribute) else describe(part) for part in node.comparators}
        return not names.isdisjoint(spot.frame.module.filled)

    def _compare_unit(self, bound: Const, operation: ast.cmpop) -> Value:
        """Compare a random number from 0 up to 1 with a bound."""
        try:
            outcomes = {COMPARE[type(operation)](number, bound.value) for number in (0.0, 0.5, 0.999999)}
        except TypeError:
            return Opaque("a comparison", bound.flags, settled=True)
        return Const(outcomes.pop(), bound.flags) if len(outcomes) == 1 else Opaque("noise", bound.flags, kind="noise")

    def _compare_length(self, number: Any, operation: ast.cmpop) -> Value:
        """Compare the length of the subject, at least one, with a number."""
        if not isinstance(number, int) or number > 1:
            return Changed("its length")
        try:
            outcomes = {COMPARE[type(operation)](length, number) for length in (1, 2, 1000)}
        except TypeError:
            return Changed("its length")
        return Const(outcomes.pop()) if len(outcomes) == 1 else Changed("its length")

    def _equal(self, left: Value, right: Value, spot: Spot) -> bool | None:
        """Return whether two values are equal, where one is a constant and that can be told."""
        for value, other in ((left, right), (right, left)):
            if isinstance(value, View) and value.how == "length" and isinstance(other, Const) and other.value == 0:
                return False
            if isinstance(other, Const) and not other.value:
                if isinstance(value, Same | Part | Text) and other.value in (None, "", b""):
                    return False
                if other.value is None and isinstance(value, Func | ClassRef | Bound | Ref | Tup | ModuleRef | Partial):
                    return False
            if isinstance(value, Opaque) and value.truthy and isinstance(other, Const) and not other.value:
                return False
            if isinstance(value, Same) and self.constants(other, spot) == []:
                return False
            if isinstance(value, Same) and isinstance(other, Const) and self._is_other_type(value, other):
                return False
        if isinstance(left, External) and isinstance(right, External) and "." not in left.name + right.name:
            return left == right  # two builtin types
        return True if isinstance(left, Same) and left == right else None

    def _is_other_type(self, value: Same, other: Const) -> bool:
        """Return whether a text is compared with what is none."""
        declared = value.hint.name if value.hint else "str"
        return self.text_subject and declared == "str" and not isinstance(other.value, str)

    def _bin_op(self, node: ast.BinOp, spot: Spot) -> Value:
        left, right = self.evaluate(node.left, spot), self.evaluate(node.right, spot)
        return self.binary(left, right, operation=node.op, node=node, spot=spot)

    def binary(self, left: Value, right: Value, *, operation: ast.operator, node: ast.AST, spot: Spot) -> Value:
        """Return the outcome of an arithmetic operator."""
        flags = flags_of(left) | flags_of(right)
        if isinstance(left, Const) and isinstance(right, Const):
            return self._fold(left.value, right.value, operation=operation, flags=flags)
        neutral = self._neutral(left, right, operation=operation, spot=spot, node=node)
        if neutral is not None:
            return neutral
        if isinstance(operation, ast.Mult) and (repeated := self._repeated(left, right, spot)) is not None:
            return repeated
        if isinstance(operation, ast.BitOr):
            laid = self.laid_over(left, right, spot) or self.piped(left, right)
            if laid is not None:
                return laid
        if isinstance(operation, ast.Mod) and isinstance(left, Const) and isinstance(left.value, str):
            return self._percent(left.value, right, node=node, spot=spot)
        if isinstance(operation, ast.Add):
            joined = self._joined(left, right, spot)
            if joined is not None:
                return joined
        return self._derived(f"`{describe(node)}`", [left, right], node=node, spot=spot, combine=True)

    def _repeated(self, left: Value, right: Value, spot: Spot) -> Value | None:
        """Return `[value] * len(subject)`, one value for each element."""
        if isinstance(left, View):
            left, right = right, left
        known = self.known_elements(left, spot) if isinstance(left, Ref) else None
        if known is None or len(known) != 1 or not isinstance(right, View) or right.how != "length":
            return None
        return self.new_list((Each(right.inner[0], known[0]),), spot)

    def piped(self, left: Value, right: Value) -> Value | None:
        """Return two runnables in a row; None where neither is one."""
        raise NotImplementedError

    def laid_over(self, left: Value, right: Value, spot: Spot) -> Value | None:
        """Return a copy of a dict of the subject with another laid over it; None where it is no such dict."""
        raise NotImplementedError

    def _fold(self, left: Any, right: Any, *, operation: ast.operator, flags: frozenset[str]) -> Value:
        large = isinstance(operation, ast.Pow | ast.LShift | ast.Mult) and any(
            isinstance(side, int) and abs(side) > LONGEST_TEXT for side in (left, right)
        )
        if large:
            return Opaque("a large number", flags)
        try:
            return Const(BINARY[type(operation)](left, right), flags)
        except Exception:  # whatever the audited operation raises
            return Opaque("a constant", flags)

    def _neutral(
        self, left: Value, right: Value, *, operation: ast.operator, spot: Spot, node: ast.AST
    ) -> Value | None:
        """Return the operand that stays as it is, or the zero that remains."""
        entry = NEUTRAL.get(type(operation))
        for value, other, right_side in ((left, right, True), (right, left, False)):
            if not isinstance(other, Const) or isinstance(other.value, bool):
                continue
            if entry and (entry[1] or right_side) and self._is_neutral(other.value, entry[0], value):
                self.decide(other.flags, describe(node))
                return value
            if isinstance(operation, ast.Mult) and other.value == 0 and not isinstance(value, Const):
                return Const(0, other.flags)
            if isinstance(operation, ast.Div) and right_side is False and other.value == 0:
                return Const(0, other.flags)
        if isinstance(operation, ast.Add) and is_subject(left) and self.constants(right, spot) == []:
            return left
        return None

    def _is_neutral(self, constant: Any, neutral: int, value: Value) -> bool:
        if isinstance(constant, int | float):
            return constant == neutral and not isinstance(value, Const)
        return neutral == 0 and constant in ("", b"") and not isinstance(value, Const)

    def _percent(self, template: str, right: Value, *, node: ast.AST, spot: Spot) -> Value:
        items = right.items if isinstance(right, Tup) else (right,)
        parts = template.split("%s")
        if "%" in "".join(parts) or len(parts) != len(items) + 1:
            return self._derived(f"`{describe(node)}`", [right], node=node, spot=spot, combine=True)
        pieces: list[Value] = [Const(parts[0])]
        for item, after in zip(items, parts[1:], strict=True):
            pieces += [self.as_text(item, node, spot), Const(after)]
        return self.text(pieces)

    def _joined(self, left: Value, right: Value, spot: Spot) -> Value | None:
        if isinstance(left, Ref) or isinstance(right, Ref):
            first, second = self.segments(left, spot), self.segments(right, spot)
            if first is not None and second is not None:
                return self.new_list((*first, *second), spot)
        if isinstance(left, Tup) and isinstance(right, Tup):
            return Tup((*left.items, *right.items))
        texts = (Text, Growing)
        known = all(isinstance(side, (*texts, Const, Same, Part)) for side in (left, right))
        stringy = isinstance(left, texts) or isinstance(right, texts)
        stringy = stringy or any(isinstance(side, Part) and side.step[0] == "span" for side in (left, right))
        constant = any(isinstance(side, Const) and isinstance(side.value, str) for side in (left, right))
        if (known and (stringy or constant)) or isinstance(left, Growing):
            return self.text([left, right])
        return None

    def text(self, values: list[Value]) -> Value:
        """Return the values put together to one text; a single piece stands for itself."""
        pieces: list[Segment] = []
        for value in values:
            if isinstance(value, Text):
                pieces += value.pieces
            elif not (isinstance(value, Const) and value.value == ""):
                pieces.append(One(value))
        pieces = _without_seams(pieces)
        if all(isinstance(piece, One) and isinstance(piece.value, Const) for piece in pieces):
            consts = [piece.value for piece in pieces if isinstance(piece.value, Const)]
            joined = "".join(str(const.value) for const in consts)
            return Const(joined, frozenset().union(*(const.flags for const in consts)))
        if len(pieces) == 1 and isinstance(pieces[0], One):
            return pieces[0].value
        return Text(tuple(pieces))

    def as_text(self, value: Value, node: ast.AST, spot: Spot) -> Value:
        """Return `str(value)`: a text stays what it is."""
        if isinstance(value, Const):
            return Const(str(value.value), value.flags)
        if isinstance(value, Same) and not self.text_subject:
            return self.changed("it is printed as text", node, spot)
        if isinstance(value, Part) and value.step == ELEMENT and not self._is_text_element(value):
            return self.unknown("prints an element as text, which may be one already", node, spot)
        return value

    def _is_text_element(self, value: Part) -> bool:
        """Return whether an element is a text: a piece of one, or declared as such."""
        declared = value.owner.hint.element if value.owner.hint else None
        whole = isinstance(value.owner, Same) and not self.text_subject
        return not whole or (declared is not None and declared.name == "str")

    def _joined_str(self, node: ast.JoinedStr, spot: Spot) -> Value:
        pieces = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.evaluate(part.value, spot)
                plain = part.conversion in (-1, ord("s")) and _formats_plainly(part.format_spec)
                pieces.append(
                    self.as_text(value, part, spot)
                    if plain
                    else self._derived("it is formatted", [value], node=part, spot=spot)
                )
            else:
                pieces.append(self.evaluate(part, spot))
        return self.text(pieces)


def _formats_plainly(spec: ast.expr | None) -> bool:
    values = spec.values if isinstance(spec, ast.JoinedStr) else []
    return all(isinstance(part, ast.Constant) and part.value in {"", "s"} for part in values)


def _without_seams(pieces: list[Segment]) -> list[Segment]:
    """Return the pieces with those put together that follow each other in the text from which they were cut."""
    joined: list[Segment] = []
    for piece in pieces:
        before = joined[-1].value if joined and isinstance(joined[-1], One) else None
        after = piece.value if isinstance(piece, One) else None
        if not isinstance(before, Part) or not isinstance(after, Part) or "span" not in (before.step[0], after.step[0]):
            joined.append(piece)
            continue
        if before.owner == after.owner and before.step[0] == after.step[0] and before.step[1][1] == after.step[1][0]:
            ends = (before.step[1][0], after.step[1][1])
            whole = before.owner if ends == (None, None) else Part(before.owner, ("span", ends))
            joined[-1] = One(whole)
        else:
            joined.append(piece)
    return joined


def _compare_bits(left: Any, right: Any, operation: ast.cmpop, flags: frozenset[str]) -> Value:
    """Return whether a member of a flag enumeration is in a combination of such members."""
    if isinstance(operation, ast.In | ast.NotIn) and isinstance(left, int) and isinstance(right, int):
        return Const((left & right == left) is isinstance(operation, ast.In), flags)
    return Opaque("a comparison", flags)


def _compare_infinite(left: Value, right: Value, operation: ast.cmpop) -> bool | None:
    """Return how any finite number compares with an infinite one, which one of the two values is."""
    if not isinstance(operation, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return None
    if isinstance(right, Const) and right.value in (math.inf, -math.inf) and not isinstance(left, Const):
        return bool(COMPARE[type(operation)](0.0, right.value))
    if isinstance(left, Const) and left.value in (math.inf, -math.inf) and not isinstance(right, Const):
        return bool(COMPARE[type(operation)](left.value, 0.0))
    return None
