"""Whether a test holds, and what is known where it does."""

from __future__ import annotations

# ruff: noqa: PLR0911, C901  # an interpreter has one way out for each kind of value
import ast
from collections.abc import Callable

from mragaudit.hookaudit.interpreter.machine import Machine, Spot, text_of
from mragaudit.hookaudit.interpreter.state import Seq, settle
from mragaudit.hookaudit.interpreter.values import (
    NO_FLAGS,
    Bound,
    Changed,
    Choice,
    ClassRef,
    Const,
    Each,
    External,
    Func,
    ModuleRef,
    One,
    Opaque,
    Part,
    Partial,
    Ref,
    Same,
    Text,
    Tup,
    Unknown,
    Value,
    View,
    flags_of,
)


class Truth(Machine):
    """What tests decide."""

    def test(self, node: ast.expr, spot: Spot) -> tuple[bool | None, frozenset[str]]:
        """Return which way a test goes, None where either, and the settings that chose it."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            chosen, flags = self.test(node.operand, spot)
            return (None if chosen is None else not chosen), flags
        if isinstance(node, ast.BoolOp):
            return self._test_bool_op(node, spot)
        if is_type_checking(node):
            return False, NO_FLAGS
        value = self.evaluate(node, spot)
        return self.truth(value, node, spot), flags_of(value)

    def _test_bool_op(self, node: ast.BoolOp, spot: Spot) -> tuple[bool | None, frozenset[str]]:
        stops = isinstance(node.op, ast.Or)
        result: bool | None = not stops
        flags: frozenset[str] = NO_FLAGS
        for part in node.values:
            chosen, own = self.test(part, spot)
            if chosen is stops:
                return stops, own | flags
            flags |= own
            result = None if chosen is None else result
        return result, flags

    def truth(self, value: Value, node: ast.AST, spot: Spot) -> bool | None:
        """Return the truth of a value where it can be told; notes the settings on which it rests."""
        flags = flags_of(value)
        if flags:
            self.decide(flags, text_of(node))
        elif isinstance(value, External | Opaque) and self._is_choice(value):
            text = text_of(node)
            value = self.setting(f"condition:{text}", text, None)
            self.decide(flags_of(value), text)
        return self._truth(value, spot)

    def _is_choice(self, value: External | Opaque) -> bool:
        """Return whether something from outside the tree is a setting rather than data."""
        if isinstance(value, External):
            return "." in value.name
        return value.truthy is None and not value.settled and value.kind != "noise"

    def _truth(self, value: Value, spot: Spot) -> bool | None:
        match value:
            case Const():
                return bool(value.value)
            case Same() | Func() | Bound() | ClassRef() | ModuleRef() | Partial():
                return True
            case View(how="length"):
                return True
            case Part(step=("attr" | "item" | "split" | "encoded" | "reversed", _)):
                return True
            case Part(owner=Same(), step=("elem", _)) if self.text_subject:
                return True
            case Changed() | Opaque():
                return value.truthy
            case Tup():
                return bool(value.items)
            case Text():
                return True if any(isinstance(piece, One) for piece in value.pieces) else None
            case Ref():
                return self._object_truth(value, spot)
            case Choice():
                truths = {self._truth(item, spot) for item in value.values}
                return truths.pop() if len(truths) == 1 else None
            case _:
                return None

    def _object_truth(self, ref: Ref, spot: Spot) -> bool | None:
        thing = spot.state.heap.get(ref.name)
        if not isinstance(thing, Seq):
            return True
        if not thing.segments:
            return False
        if isinstance(settle(ref, spot.state), Same):
            return True
        return True if any(isinstance(s, One) or (isinstance(s, Each) and s.exact) for s in thing.segments) else None

    def filtered(self, value: Value, *, truthy: bool) -> Value:
        """Return the alternatives of a value that are true, or false."""
        if not isinstance(value, Choice):
            return value
        kept = [item for item in value.values if not isinstance(item, Const) or bool(item.value) is truthy]
        return self.merged(kept) if kept else value

    def narrowed(self, test: ast.expr, spot: Spot, *, chosen: bool) -> Spot:
        """Return a forked place where a test went one way, with what that says of the names in it."""
        spot = Spot(spot.frame, spot.state.fork())
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, chosen = test.operand, not chosen
        if isinstance(test, ast.NamedExpr):
            test = test.target
        match test:
            case ast.Name():
                self._narrow_name(test.id, spot, keep=lambda value: _may_be(value, truthy=chosen))
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(None)]):
                is_none = isinstance(test.ops[0], ast.Is) is chosen
                self._narrow_name(name, spot, keep=lambda value: _is_none(value) is is_none)
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                if isinstance(test.ops[0], ast.Eq) is chosen:
                    self._narrow_equal(left, right, spot)
            case ast.BoolOp() if (part := self._deciding_part(test, spot)) is not None:
                return self.narrowed(part, spot, chosen=chosen)
            case _:
                pass
        return spot

    def _deciding_part(self, test: ast.BoolOp, spot: Spot) -> ast.expr | None:
        """Return the part that says which way `and` or `or` went, where there is but one and names are equated."""
        if not any(map(_equates_names, test.values)):
            return None
        neutral = isinstance(test.op, ast.And)
        aside = Spot(spot.frame, spot.state.fork())
        open_parts = [part for part in test.values if self.test(part, aside)[0] is not neutral]
        return open_parts[0] if len(open_parts) == 1 else None

    def _narrow_equal(self, left: ast.expr, right: ast.expr, spot: Spot) -> None:
        """Note that a text which was found to equal the subject is the subject."""
        if not self.text_subject or not isinstance(left, ast.Name) or not isinstance(right, ast.Name):
            return
        names = spot.state.names(spot.frame.number)
        for name, other in ((left.id, right.id), (right.id, left.id)):
            value, same = names.get(name), names.get(other)
            if isinstance(value, Changed | Unknown) and isinstance(same, Same):
                spot.state.own(spot.frame.number)[name] = same

    def _narrow_name(self, name: str, spot: Spot, *, keep: Callable[[Value], bool]) -> None:
        value = spot.state.names(spot.frame.number).get(name)
        if isinstance(value, Choice):
            kept = [item for item in value.values if keep(item)]
            if kept:
                spot.state.own(spot.frame.number)[name] = self.merged(kept)


def _equates_names(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq | ast.NotEq):
        return False
    return all(isinstance(side, ast.Name) for side in (test.left, *test.comparators))


def is_type_checking(test: ast.expr) -> bool:
    """Return whether a test is true for type checkers only."""
    return (test.id if isinstance(test, ast.Name) else getattr(test, "attr", "")) == "TYPE_CHECKING"


def _is_none(value: Value) -> bool:
    return isinstance(value, Const) and value.value is None


def _may_be(value: Value, *, truthy: bool) -> bool:
    if isinstance(value, Const):
        return bool(value.value) is truthy
    return truthy or not isinstance(value, Same | Func | Bound)
