"""Evaluation of expressions."""

from __future__ import annotations

# ruff: noqa: PLR0911, C901  # an interpreter has one way out for each kind of value
import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mragaudit.hookaudit.machine import CallArgs, Machine, Spot, text_of
from mragaudit.hookaudit.state import (
    ELEMENT,
    Clone,
    Frame,
    Instance,
    Seq,
    Step,
    as_same,
    merge_states,
    owners_of,
    root_of,
    settle,
)
from mragaudit.hookaudit.values import (
    NO_FLAGS,
    Bound,
    Changed,
    Choice,
    ClassRef,
    Const,
    Each,
    External,
    Func,
    Growing,
    Index,
    Method,
    ModuleRef,
    One,
    Opaque,
    Part,
    Partial,
    Ref,
    Same,
    Segment,
    Spread,
    Super,
    Text,
    Tup,
    Unknown,
    Value,
    View,
    describe,
    flags_of,
    is_subject,
    merge_values,
    with_flags,
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
UNROLLED = 24
UNIT = "random number from 0 up to 1"
LONGEST_TEXT = 10_000


class Expressions(Machine):
    """The interpreter's expressions."""

    def evaluate(self, node: ast.expr, spot: Spot) -> Value:
        """Return the value of an expression."""
        self.step()
        handler = _HANDLERS.get(type(node))
        return handler(self, node, spot) if handler else Opaque(type(node).__name__)

    # simple ones
    def _constant(self, node: ast.Constant, _spot: Spot) -> Value:
        return Const(node.value)

    def _name(self, node: ast.Name, spot: Spot) -> Value:
        value = self.lookup(node.id, spot)
        self.reread(value, node.id)
        return value

    def _named(self, node: ast.NamedExpr, spot: Spot) -> Value:
        value = self.evaluate(node.value, spot)
        self.assign(node.target, value, spot)
        return value

    def _await(self, node: ast.Await, spot: Spot) -> Value:
        return self.evaluate(node.value, spot)

    def _lambda(self, node: ast.Lambda, spot: Spot) -> Value:
        return Func(node, spot.frame.module, spot.frame.number)

    def _if_exp(self, node: ast.IfExp, spot: Spot) -> Value:
        chosen, flags = self.test(node.test, spot)
        if chosen is not None:
            return with_flags(self.evaluate(node.body if chosen else node.orelse, spot), flags)
        spots = [self.narrowed(node.test, spot, chosen=chosen) for chosen in (True, False)]
        pairs = zip((node.body, node.orelse), spots, strict=True)
        values = [as_same(self.evaluate(part, at), at.state) for part, at in pairs]
        spot.state.become(merge_states([at.state for at in spots]))
        return self.merged(values)

    def _bool_op(self, node: ast.BoolOp, spot: Spot) -> Value:
        stops = isinstance(node.op, ast.Or)
        result: Value | None = None
        flags: frozenset[str] = NO_FLAGS
        for part in node.values:
            value = self.evaluate(part, spot)
            truth = self.truth(value, part, spot)
            flags |= flags_of(value)
            if truth is stops or part is node.values[-1]:
                return with_flags(value if result is None else merge_values(result, value), flags)
            if truth is None:
                kept = self.filtered(value, truthy=stops)
                result = kept if result is None else merge_values(result, kept)
        return result or Opaque()

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
                return Opaque("a comparison", flags)
        members = self.constants(right, spot)
        if isinstance(left, Const) and members is not None and isinstance(operation, ast.In | ast.NotIn):
            return Const((left.value in members) is isinstance(operation, ast.In), flags)
        if isinstance(operation, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            equal = self._equal(left, right, spot)
            if equal is not None:
                return Const(equal is isinstance(operation, ast.Is | ast.Eq), flags)
        if isinstance(left, Opaque) and left.kind == UNIT and isinstance(right, Const):
            self.decide(flags, describe(node))
            return self._compare_unit(right, operation)
        if isinstance(left, View) and left.how == "length" and isinstance(right, Const):
            return self._compare_length(right.value, operation)
        if any(isinstance(value, View) and value.how == "length" for value in (left, right)):
            return self.changed("a test of its length", node, spot)
        return self._derived("a test of it", [left, right], node=node, spot=spot)

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
            if isinstance(value, Same) and self.constants(other, spot) == []:
                return False
        return True if isinstance(left, Same) and left == right else None

    # operators
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
        if isinstance(operation, ast.Mod) and isinstance(left, Const) and isinstance(left.value, str):
            return self._percent(left.value, right, node=node, spot=spot)
        if isinstance(operation, ast.Add):
            joined = self._joined(left, right, spot)
            if joined is not None:
                return joined
        return self._derived(f"`{describe(node)}`", [left, right], node=node, spot=spot, combine=True)

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
        return value

    def _joined_str(self, node: ast.JoinedStr, spot: Spot) -> Value:
        pieces = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.evaluate(part.value, spot)
                plain = part.conversion in (-1, ord("s")) and part.format_spec is None
                pieces.append(
                    self.as_text(value, part, spot)
                    if plain
                    else self._derived("it is formatted", [value], node=part, spot=spot)
                )
            else:
                pieces.append(self.evaluate(part, spot))
        return self.text(pieces)

    def _derived(self, what: str, values: list[Value], *, node: ast.AST, spot: Spot, combine: bool = False) -> Value:
        """Return what is computed from values: a change where the subject is among them."""
        settled = [settle(value, spot.state) for value in values]
        doubt = next((value for value in settled if isinstance(value, Unknown)), None)
        if doubt is not None and not any(isinstance(value, Same | Part | Changed) for value in settled):
            return doubt
        if any(map(is_subject, settled)):
            return self.changed(what, node, spot)
        flags = frozenset().union(*map(flags_of, values))
        settled_later = any(isinstance(value, Opaque) and value.settled for value in values)
        return Opaque(what if combine else "a value computed", flags, settled=settled_later)

    # displays
    def _tuple(self, node: ast.Tuple, spot: Spot) -> Value:
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return self.new_list(self._elements(node.elts, spot), spot, kind="tuple")
        return Tup(tuple(self.evaluate(item, spot) for item in node.elts))

    def _list(self, node: ast.List | ast.Set, spot: Spot) -> Value:
        kind = "list" if isinstance(node, ast.List) else "set"
        return self.new_list(self._elements(node.elts, spot), spot, kind=kind)

    def _elements(self, nodes: list[ast.expr], spot: Spot) -> tuple[Segment, ...]:
        segments: list[Segment] = []
        for item in nodes:
            if isinstance(item, ast.Starred):
                value = self.evaluate(item.value, spot)
                inner = self.segments(value, spot)
                segments += inner if inner is not None else (Spread(value),)
            else:
                segments.append(One(self.evaluate(item, spot)))
        return tuple(segments)

    def _dict(self, node: ast.Dict, spot: Spot) -> Value:
        segments: list[Segment] = []
        base: Value | None = None
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.evaluate(item, spot)
            if key is None and not segments and isinstance(value, Part) and base is None:
                base = self.allocate(Clone(value), spot.state)
            elif key is None:
                inner = self.segments(value, spot)
                segments += inner if inner is not None else (Spread(value),)
            else:
                segments.append(One(Tup((self.evaluate(key, spot), value))))
        if isinstance(base, Ref):
            for segment in segments:
                self.write_pairs(base, segment, spot)
            return base
        return self.new_list(tuple(segments), spot, kind="dict")

    def write_pairs(self, target: Value, segment: Segment, spot: Spot) -> None:
        """Write key and value of a dict's segment to an object."""
        if isinstance(segment.value, Tup) and isinstance(segment, One):
            key, value = segment.value.items
            self.write(target, self.step_of(key, target), value, node=ast.Pass(), spot=spot)
        else:
            self.write(
                target, ("item", segment.value), Changed("other fields are laid over it"), node=ast.Pass(), spot=spot
            )

    # comprehensions
    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, spot: Spot) -> Value:
        frame = self.new_frame(spot.frame.module, parent=spot.frame, func=spot.frame.func)
        inner = Spot(frame, spot.state)
        inner.state.own(frame.number)
        segments = self._generate(node.generators, inner, lambda at: self.evaluate(node.elt, at))
        kind = "set" if isinstance(node, ast.SetComp) else "list"
        return self.new_list(segments, spot, kind=kind)

    def _dict_comp(self, node: ast.DictComp, spot: Spot) -> Value:
        frame = self.new_frame(spot.frame.module, parent=spot.frame, func=spot.frame.func)
        inner = Spot(frame, spot.state)
        inner.state.own(frame.number)
        segments = self._generate(
            node.generators, inner, lambda at: Tup((self.evaluate(node.key, at), self.evaluate(node.value, at)))
        )
        return self.new_list(segments, spot, kind="dict")

    def _generate(
        self, generators: list[ast.comprehension], spot: Spot, make: Callable[[Spot], Value]
    ) -> tuple[Segment, ...]:
        if not generators:
            return (One(make(spot)),)
        generator, rest = generators[0], generators[1:]
        source = self.evaluate(generator.iter, spot)
        source = self.iterated(source, spot)
        known = self.known_elements(source, spot)
        if known is not None:
            self.decide(flags_of(source), describe(generator.iter))
            return self._generate_known(known, generators, spot, make)
        self.assign(generator.target, self.element(source, generator.iter, spot), spot)
        kept, exact = self._filters(generator.ifs, spot)
        if not kept:
            return ()
        inner = self._generate(rest, spot, make)
        if len(inner) == 1 and isinstance(inner[0], One):
            return (Each(source, inner[0].value, exact),)
        return (Each(source, self.changed("it is flattened", generator.iter, spot), exact=False),) if inner else ()

    def _generate_known(
        self, known: list[Value], generators: list[ast.comprehension], spot: Spot, make: Callable[[Spot], Value]
    ) -> tuple[Segment, ...]:
        segments: list[Segment] = []
        for value in known:
            self.assign(generators[0].target, value, spot)
            kept, exact = self._filters(generators[0].ifs, spot)
            if not kept:
                continue
            for segment in self._generate(generators[1:], spot, make):
                segments.append(segment if exact else Each(Opaque("a filter"), segment.value, exact=False))
        return tuple(segments)

    def _filters(self, tests: list[ast.expr], spot: Spot) -> tuple[bool, bool]:
        """Return whether an element may pass, and whether it always does."""
        exact = True
        for test in tests:
            chosen, _ = self.test(test, spot)
            if chosen is False:
                return False, True
            exact = exact and chosen is True
        return True, exact

    # iteration
    def known_elements(self, value: Value, spot: Spot) -> list[Value] | None:
        """Return the elements one by one, where they are few and known."""
        if isinstance(value, Tup):
            return list(value.items)
        if isinstance(value, Const) and isinstance(value.value, str | bytes) and len(value.value) <= UNROLLED:
            return [Const(item, value.flags) for item in value.value]
        if isinstance(value, View) and value.how in {"enumerate", "reversed"}:
            inner = self.known_elements(value.inner[0], spot)
            if inner is None:
                return None
            return inner[::-1] if value.how == "reversed" else [Tup((Const(i), item)) for i, item in enumerate(inner)]
        if isinstance(value, View) and value.how in {"items", "keys", "values"}:
            return self._known_pairs(value, spot)
        thing = spot.state.heap.get(value.name) if isinstance(value, Ref) else None
        if not isinstance(thing, Seq) or len(thing.segments) > UNROLLED:
            return None
        if not all(isinstance(segment, One) for segment in thing.segments):
            return None
        items = [segment.value for segment in thing.segments]
        return [item.items[0] for item in items if isinstance(item, Tup)] if thing.kind == "dict" else items

    def _known_pairs(self, view: View, spot: Spot) -> list[Value] | None:
        thing = spot.state.heap.get(view.inner[0].name) if isinstance(view.inner[0], Ref) else None
        if not isinstance(thing, Seq) or not all(isinstance(segment, One) for segment in thing.segments):
            return None
        pairs = [segment.value for segment in thing.segments if isinstance(segment.value, Tup)]
        if view.how == "items":
            return list(pairs)
        return [pair.items[0 if view.how == "keys" else 1] for pair in pairs]

    def iterated(self, value: Value, spot: Spot) -> Value:
        """Return what an iteration runs over: the subject itself where a container equals it."""
        if isinstance(value, View):
            return View(value.how, tuple(self.iterated(item, spot) for item in value.inner))
        if not isinstance(value, Text | Ref):
            return value
        settled = settle(value, spot.state)
        return settled if isinstance(settled, Same | Part) or isinstance(value, Text) else value

    def constants(self, value: Value, spot: Spot) -> list[Any] | None:
        """Return the elements of a container of constants."""
        known = None if isinstance(value, Const) else self.known_elements(value, spot)
        if known is None or not all(isinstance(item, Const) for item in known):
            return None
        return [item.value for item in known if isinstance(item, Const)]

    def element(self, value: Value, node: ast.AST, spot: Spot) -> Value:
        """Return any one element of a value."""
        if isinstance(value, Text):
            value = settle(value, spot.state)
        match value:
            case Same() | Part():
                hint = value.hint.element if value.hint else None
                return Part(value, ELEMENT, hint)
            case View():
                return self._view_element(value, node, spot)
            case Changed() | Unknown():
                return replace(value, truthy=None) if isinstance(value, Changed) else value
            case Ref():
                return self._object_element(value, node, spot)
            case Opaque():
                kind = "re.Pattern" if value.kind == "patterns" else ""
                return Opaque("an element", value.flags, kind=kind, settled=value.settled)
            case Text() | Growing():
                return self.changed("a piece of it", node, spot)
            case _:
                return Opaque("an element", flags_of(value))

    def _object_element(self, ref: Ref, node: ast.AST, spot: Spot) -> Value:
        settled = settle(ref, spot.state)
        if isinstance(settled, Same | Part | Changed | Unknown):
            return self.element(settled, node, spot)
        thing = spot.state.heap.get(ref.name)
        values = [segment.value for segment in thing.segments] if isinstance(thing, Seq) else []
        result: Value = values[0] if values else Opaque("an element", ref.flags)
        for value in values[1:]:
            result = merge_values(result, value)
        return result

    def _view_element(self, view: View, node: ast.AST, spot: Spot) -> Value:
        inner = view.inner[0]
        match view.how:
            case "enumerate":
                return Tup((Index(inner), self.element(inner, node, spot)))
            case "range":
                return Index(inner)
            case "zip":
                return Tup(tuple(self.element(item, node, spot) for item in view.inner))
            case "items" if isinstance(inner, Same | Part):
                return Tup((Part(inner, ("key", None)), Part(inner, ("value", None))))
            case "keys" | "values" if isinstance(inner, Same | Part):
                return Part(inner, (view.how[:-1], None))
            case "items" | "keys" | "values" if isinstance(inner, Ref):
                return self._pair_element(view.how, inner, node, spot)
            case "items":
                return Tup((Opaque("a key"), self.element(inner, node, spot)))
            case _:
                return self._derived("its elements in another order", [inner], node=node, spot=spot)

    def _pair_element(self, how: str, ref: Ref, node: ast.AST, spot: Spot) -> Value:
        """Return any key, value or pair of a dict of the hook's own, which may have dropped elements of the subject."""
        thing = spot.state.heap.get(ref.name)
        pairs = [segment.value for segment in thing.segments] if isinstance(thing, Seq) else []
        values = [pair.items[0 if how == "keys" else 1] for pair in pairs if isinstance(pair, Tup)]
        merged = self.merged(values) if values and len(values) == len(pairs) else Opaque("an element", ref.flags)
        if isinstance(merged, Same | Part):
            merged = self.unknown("goes through a dict, which may drop or reorder elements", node, spot)
        return Tup((Opaque("a key"), merged)) if how == "items" else merged

    def segments(self, value: Value, spot: Spot) -> tuple[Segment, ...] | None:
        """Return the segments of what can be spread into a list."""
        if isinstance(value, Ref):
            thing = spot.state.heap.get(value.name)
            return thing.segments if isinstance(thing, Seq) else None
        if isinstance(value, Tup):
            return tuple(One(item) for item in value.items)
        if isinstance(value, Same | Part | Changed | Unknown):
            return (Spread(value),)
        return (Each(value, self.element(value, ast.Pass(), spot)),) if isinstance(value, View) else None

    # attributes and items
    def _attribute(self, node: ast.Attribute, spot: Spot) -> Value:
        owner = self.evaluate(node.value, spot)
        value = self.attribute(owner, node.attr, node=node, spot=spot)
        self.reread(value, describe(node))
        return value

    def attribute(self, owner: Value, name: str, *, node: ast.AST, spot: Spot) -> Value:
        """Return an attribute of a value."""
        match owner:
            case Ref():
                return self._object_attribute(owner, name, node=node, spot=spot)
            case ClassRef():
                return self.class_attribute(owner, name, node=node, spot=spot)
            case ModuleRef():
                return self._module_attribute(owner, name, spot)
            case External():
                return External(f"{owner.name}.{name}")
            case Same() | Part():
                return self._subject_attribute(owner, name, node=node, spot=spot)
            case Super():
                return self.super_attribute(owner, name, node=node, spot=spot)
            case Choice():
                results = [self.attribute(item, name, node=node, spot=spot) for item in owner.values]
                return self.merged(results)
            case Changed() | Unknown() if not _is_method_name(name, node):
                return owner
            case Opaque(settled=True) if not _is_method_name(name, node):
                return Opaque(f"`.{name}` of {owner.why}", settled=True)
            case Opaque() if not _is_method_name(name, node):
                return self.setting(f"value:{describe(node)}", describe(node), None)
            case _:
                self.notes.used |= flags_of(owner)
                return Method(owner, name)

    def merged(self, values: list[Value]) -> Value:
        """Return what holds of any of several values."""
        result = values[0]
        for value in values[1:]:
            result = merge_values(result, value)
        return result

    def _object_attribute(self, ref: Ref, name: str, *, node: ast.AST, spot: Spot) -> Value:
        thing = spot.state.heap.get(ref.name)
        if isinstance(thing, Instance):
            return self.instance_attribute(ref, thing, name=name, node=node, spot=spot)
        if isinstance(thing, Clone) and not _is_method_name(name, node):
            return self.read_clone(ref, thing, ("attr", name), spot)
        return Method(ref, name)

    def read_clone(self, ref: Ref, clone: Clone, step: Step, spot: Spot) -> Value:
        """Return what a copy holds at a step; parts of a deep copy are copies as well."""
        written = clone.written(step)
        if written is not None:
            return written
        part = Part(clone.original, step)
        if not clone.deep or step[1] in {"text", "content", "page_content", "score", "id"}:
            return part
        inner = self.allocate(Clone(part, deep=True), spot.state)
        spot.state.heap[ref.name] = replace(clone, writes=(*clone.writes, (step, inner)))
        return inner

    def _module_attribute(self, owner: ModuleRef, name: str, spot: Spot) -> Value:
        found = self.body_name(name, self.module_frame(owner.module), spot.state)
        if found is not None:
            return found
        inner = self.project.find_module(f"{owner.module.name}.{name}")
        return ModuleRef(inner) if inner else External(f"{owner.module.name}.{name}")

    def _subject_attribute(self, owner: Same | Part, name: str, *, node: ast.AST, spot: Spot) -> Value:
        if owner.hint and owner.hint.cls:
            found = self.find_in_class(owner.hint.cls, name, spot)
            if isinstance(found, Func):
                return Bound(found, owner)
        return Method(owner, name) if _is_method_name(name, node) else Part(owner, ("attr", name))

    def _subscript(self, node: ast.Subscript, spot: Spot) -> Value:
        owner = self.evaluate(node.value, spot)
        if isinstance(node.slice, ast.Slice):
            return self._slice(owner, node.slice, node=node, spot=spot)
        key = self.evaluate(node.slice, spot)
        return self.item(owner, key, node=node, spot=spot)

    def item(self, owner: Value, key: Value, *, node: ast.AST, spot: Spot) -> Value:
        """Return an item of a value."""
        match owner:
            case Same() | Part():
                step = self.step_of(key, owner)
                return Part(owner, step, owner.hint.element if owner.hint and step == ELEMENT else None)
            case Tup():
                return self._tuple_item(owner, key)
            case Ref():
                return self._object_item(owner, key, node=node, spot=spot)
            case Changed() | Unknown():
                return owner
            case Opaque() if is_subject(key):
                return self.unknown("takes what the input chooses from outside the tree", node, spot)
            case Const() if isinstance(key, Const):
                return self._constant_item(owner, key)
            case External(name="os.environ"):
                return self.setting(f"env:{describe(node)}", describe(node), None)
            case Opaque(kind="re.Match") if isinstance(key, Const) and key.value == 0:
                return Opaque("the match", kind="re.Match.group")
            case Choice():
                return self.merged([self.item(value, key, node=node, spot=spot) for value in owner.values])
            case _:
                return self._derived("an item", [owner, key], node=node, spot=spot)

    def step_of(self, key: Value, owner: Value) -> Step:
        """Return the step from an object to its item."""
        if isinstance(key, Index) and owner in owners_of(key.source):
            return ELEMENT
        if isinstance(key, Part) and key.step == ("key", None) and key.owner == owner:
            return ("value", None)
        if isinstance(key, Part) and key.owner == owner and key.step == ELEMENT:
            return ("value", None)  # `for key in scores: scores[key]`
        return ("item", key.value if isinstance(key, Const) else key)

    def _constant_item(self, owner: Const, key: Const) -> Value:
        try:
            return Const(owner.value[key.value], owner.flags | key.flags)
        except Exception:  # whatever the audited subscript raises
            return Opaque("an item", owner.flags | key.flags)

    def _tuple_item(self, owner: Tup, key: Value) -> Value:
        if isinstance(key, Const) and isinstance(key.value, int) and -len(owner.items) <= key.value < len(owner.items):
            return with_flags(owner.items[key.value], key.flags)
        return self.merged(list(owner.items)) if owner.items else Opaque("an item")

    def _object_item(self, ref: Ref, key: Value, *, node: ast.AST, spot: Spot) -> Value:
        thing = spot.state.heap.get(ref.name)
        if isinstance(thing, Clone):
            return self.read_clone(ref, thing, self.step_of(key, thing.original), spot)
        if isinstance(thing, Instance):
            getter = self.attribute(ref, "__getitem__", node=node, spot=spot)
            return self.call(getter, CallArgs((key,)), node=node, spot=spot)
        if not isinstance(thing, Seq):
            return Opaque("an item")
        flags = flags_of(ref) | flags_of(key)
        if thing.kind == "dict":
            return self._dict_item(ref, thing, key=key, flags=flags, node=node, spot=spot)
        if all(isinstance(segment, One) for segment in thing.segments):
            items = Tup(tuple(segment.value for segment in thing.segments))
            return with_flags(self._tuple_item(items, key), flags)
        settled = settle(ref, spot.state)
        if isinstance(settled, Same | Part):
            return self.item(settled, key, node=node, spot=spot)
        return self.element(ref, node, spot)

    def _dict_item(
        self, ref: Ref, thing: Seq, *, key: Value, flags: frozenset[str], node: ast.AST, spot: Spot
    ) -> Value:
        pairs = [segment.value for segment in thing.segments if isinstance(segment.value, Tup)]
        if isinstance(key, Const):
            for pair in reversed(pairs):
                if isinstance(pair.items[0], Const) and pair.items[0].value == key.value:
                    self.decide(flags, describe(node))
                    return with_flags(pair.items[1], flags)
        elif len(pairs) == len(thing.segments) and pairs:
            self.decide(flags, describe(node))
            return self.merged([pair.items[1] for pair in pairs])
        settled = settle(ref, spot.state)
        if isinstance(settled, Same | Part):
            return self.item(settled, key, node=node, spot=spot)
        return (
            settled if isinstance(settled, Changed) else self.unknown("an item that the dict does not show", node, spot)
        )

    def _slice(self, owner: Value, part: ast.Slice, *, node: ast.AST, spot: Spot) -> Value:
        bounds = [self.evaluate(bound, spot) if bound else Const(None) for bound in (part.lower, part.upper, part.step)]
        lower, upper, step = bounds
        flags = frozenset().union(*map(flags_of, bounds))
        settled = settle(owner, spot.state)
        whole = (
            (isinstance(lower, Const) and lower.value in (None, 0))
            and ((isinstance(upper, Const) and upper.value is None) or _is_length_of(upper, settled))
            and isinstance(step, Const)
            and step.value in (None, 1)
        )
        if whole and isinstance(settled, Same | Part):
            self.decide(flags, describe(node))
            return self.shallow_copy(settled, spot)
        if isinstance(owner, Const) and all(isinstance(bound, Const) for bound in bounds):
            values = [bound.value for bound in bounds if isinstance(bound, Const)]
            try:
                return Const(owner.value[slice(*values)], owner.flags | flags)
            except Exception:  # whatever the audited slice raises
                return Opaque("a slice")
        if isinstance(settled, Same | Part) and bounds == [Const(None), Const(None), Const(-1)]:
            return self.reverse(settled)
        if is_subject(settled):
            self.decide(flags, describe(node))
            return self.changed(f"`{describe(node)}` keeps only a part", node, spot)
        return Opaque("a slice", flags_of(owner) | flags)

    def reverse(self, value: Same | Part) -> Same | Part:
        """Return the value the other way round; twice is not at all."""
        if isinstance(value, Part) and value.step == ("reversed", None):
            return value.owner
        return Part(value, ("reversed", None), value.hint)

    def shallow_copy(self, value: Same | Part, spot: Spot, *, deep: bool = False) -> Value:
        """Return a copy; the elements of a shallow copy are the subject's own."""
        if isinstance(value, Part):
            return self.allocate(Clone(value, deep), spot.state)
        self._counter += 1
        name = f"#{self._counter}"
        if self.text_subject:
            return replace(value, copied=True)
        elements = frozenset({f"{name}.*"}) if deep else value.elements
        return Same(frozenset({name}), elements, copied=True, hint=value.hint)

    # writing
    def assign(self, target: ast.expr, value: Value, spot: Spot) -> None:
        """Bind or write a value to an assignment target."""
        match target:
            case ast.Name():
                self._binding_names(target.id, spot)[target.id] = value
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, value, spot)
            case ast.Starred():
                self.assign(target.value, value, spot)
            case ast.Attribute():
                owner = self.evaluate(target.value, spot)
                self.write(owner, ("attr", target.attr), value, node=target, spot=spot)
            case ast.Subscript():
                owner = self.evaluate(target.value, spot)
                self._write_item(owner, target, value, spot)
            case _:
                return

    def _binding_names(self, name: str, spot: Spot) -> dict[str, Value]:
        frame: Frame | None = spot.frame
        if frame is not None and frame.func is not None and name in _nonlocal_names(frame.func):
            frame = frame.parent
            while frame is not None and name not in spot.state.names(frame.number):
                frame = frame.parent
        number = frame.number if frame else self.module_frame(spot.frame.module).number
        return spot.state.own(number)

    def _unpack(self, targets: list[ast.expr], value: Value, spot: Spot) -> None:
        known = self.known_elements(value, spot)
        if known is not None and len(known) == len(targets):
            for target, item in zip(targets, known, strict=True):
                self.assign(target, item, spot)
            return
        for position, target in enumerate(targets):
            if isinstance(value, Same | Part):
                self.assign(target, Part(value, ("item", position)), spot)
            else:
                self.assign(target, self.element(value, target, spot), spot)

    def _write_item(self, owner: Value, target: ast.Subscript, value: Value, spot: Spot) -> None:
        if isinstance(target.slice, ast.Slice):
            whole = target.slice.lower is None and target.slice.upper is None
            settled = settle(value, spot.state)
            if whole and isinstance(settled, Same) and isinstance(settle(owner, spot.state), Same):
                return
            self.write(
                owner,
                ("slice", None),
                settled if whole else self.changed("a slice", target, spot),
                node=target,
                spot=spot,
            )
            return
        key = self.evaluate(target.slice, spot)
        anchor = owner
        if isinstance(owner, Ref):
            thing = spot.state.heap.get(owner.name)
            anchor = thing.original if isinstance(thing, Clone) else settle(owner, spot.state)
        self.write(owner, self.step_of(key, anchor), value, node=target, spot=spot, key=key)

    def write(
        self, owner: Value, step: Step, value: Value, *, node: ast.AST, spot: Spot, key: Value | None = None
    ) -> None:
        """Write to an attribute or item of a value."""
        if isinstance(owner, Choice):
            for item in owner.values:
                self.write(item, step, value, node=node, spot=spot, key=key)
        elif isinstance(owner, Same | Part):
            self._write_subject(owner, step, value, node=node, spot=spot)
        elif isinstance(owner, Ref):
            self._write_object(owner, step, value, node=node, spot=spot, key=key)

    def _write_subject(self, owner: Same | Part, step: Step, value: Value, *, node: ast.AST, spot: Spot) -> None:
        settled = settle(value, spot.state)
        if settled == Part(owner, step):
            return
        whole = root_of(owner)
        owners = whole.tops if isinstance(owner, Same) else whole.elements
        if isinstance(settled, Unknown):
            spot.state.touch(owners, settled)
            return
        where = describe(node) if isinstance(node, ast.expr) else "a field of it"
        spot.state.touch(owners, self.changed(f"`{where}` is rewritten in place", node, spot))

    def _write_object(
        self, ref: Ref, step: Step, value: Value, *, node: ast.AST, spot: Spot, key: Value | None
    ) -> None:
        thing = spot.state.heap.get(ref.name)
        if isinstance(thing, Clone):
            spot.state.heap[ref.name] = replace(thing, writes=(*thing.writes, (step, value)))
        elif isinstance(thing, Instance) and step[0] == "attr":
            spot.state.heap[ref.name] = Instance(thing.cls, {**thing.attributes, step[1]: value})
        elif isinstance(thing, Seq) and thing.kind == "dict":
            pair = One(Tup((key if key is not None else Const(step[1]), value)))
            segments = tuple(s for s in thing.segments if not _same_key(s, pair))
            spot.state.heap[ref.name] = Seq("dict", (*segments, pair))
        elif isinstance(thing, Seq):
            self._write_list(ref, thing, step=step, value=value, node=node, spot=spot)

    def _write_list(self, ref: Ref, thing: Seq, *, step: Step, value: Value, node: ast.AST, spot: Spot) -> None:
        settled = settle(ref, spot.state)
        new = settle(value, spot.state)
        if isinstance(settled, Same | Part) and new == Part(settled, step):
            return
        position = step[1]
        if isinstance(position, int) and all(isinstance(s, One) for s in thing.segments):
            if -len(thing.segments) <= position < len(thing.segments):
                segments = list(thing.segments)
                segments[position] = One(value)
                spot.state.heap[ref.name] = Seq(thing.kind, tuple(segments))
            return
        if step[0] == "elem" and isinstance(settled, Same | Part | Opaque) and not isinstance(new, Unknown):
            new = self.changed("an element is replaced", node, spot)
        spot.state.heap[ref.name] = Seq(thing.kind, (*thing.segments, One(new)))

    # truth
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
            case _:
                pass
        return spot

    def _narrow_name(self, name: str, spot: Spot, *, keep: Callable[[Value], bool]) -> None:
        value = spot.state.names(spot.frame.number).get(name)
        if isinstance(value, Choice):
            kept = [item for item in value.values if keep(item)]
            if kept:
                spot.state.own(spot.frame.number)[name] = self.merged(kept)

    # provided by the calls
    def class_attribute(self, owner: ClassRef, name: str, *, node: ast.AST, spot: Spot) -> Value:
        """Return an attribute of a class."""
        raise NotImplementedError

    def instance_attribute(self, ref: Ref, thing: Instance, *, name: str, node: ast.AST, spot: Spot) -> Value:
        """Return an attribute of an object."""
        raise NotImplementedError

    def super_attribute(self, owner: Super, name: str, *, node: ast.AST, spot: Spot) -> Value:
        """Return an attribute of the next classes."""
        raise NotImplementedError

    def find_in_class(self, info: Any, name: str, spot: Spot) -> Value | None:
        """Return what a class or its bases hold under a name, unbound."""
        raise NotImplementedError

    def _call(self, node: ast.Call, spot: Spot) -> Value:
        raise NotImplementedError

    def _yield(self, node: ast.Yield | ast.YieldFrom, spot: Spot) -> Value:
        value = self.evaluate(node.value, spot) if node.value else Const(None)
        results = spot.frame.results
        if results is not None:
            thing = spot.state.heap.get(results.name)
            segments = thing.segments if isinstance(thing, Seq) else ()
            added = self.segments(value, spot) if isinstance(node, ast.YieldFrom) else (One(value),)
            extra = added if added is not None else (Spread(value),)
            spot.state.heap[results.name] = Seq("generator", (*segments, *extra))
        return Opaque("what the caller sends", settled=True)


def is_type_checking(test: ast.expr) -> bool:
    """Return whether a test is true for type checkers only."""
    return (test.id if isinstance(test, ast.Name) else getattr(test, "attr", "")) == "TYPE_CHECKING"


def _is_method_name(name: str, node: ast.AST) -> bool:
    """Return whether an attribute is being called."""
    return isinstance(node, ast.Call) or name.startswith("__")


def _is_length_of(value: Value, owner: Value) -> bool:
    return isinstance(value, View) and value.how == "length" and value.inner[0] == owner


def _same_key(left: Segment, right: Segment) -> bool:
    return (
        isinstance(left, One)
        and isinstance(left.value, Tup)
        and isinstance(right.value, Tup)
        and left.value.items[0] == right.value.items[0]
    )


def _is_none(value: Value) -> bool:
    return isinstance(value, Const) and value.value is None


def _may_be(value: Value, *, truthy: bool) -> bool:
    if isinstance(value, Const):
        return bool(value.value) is truthy
    return truthy or not isinstance(value, Same | Func | Bound)


def _nonlocal_names(func: Func) -> frozenset[str]:
    body = [] if isinstance(func.node, ast.Lambda) else func.node.body
    return frozenset(name for node in body if isinstance(node, ast.Nonlocal | ast.Global) for name in node.names)


_HANDLERS: dict[type[ast.expr], Callable[[Any, Any, Spot], Value]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.NamedExpr: Expressions._named,
    ast.Await: Expressions._await,
    ast.Lambda: Expressions._lambda,
    ast.IfExp: Expressions._if_exp,
    ast.BoolOp: Expressions._bool_op,
    ast.UnaryOp: Expressions._unary,
    ast.Compare: Expressions._compare,
    ast.BinOp: Expressions._bin_op,
    ast.JoinedStr: Expressions._joined_str,
    ast.Tuple: Expressions._tuple,
    ast.List: Expressions._list,
    ast.Set: Expressions._list,
    ast.Dict: Expressions._dict,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._dict_comp,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield,
    ast.Call: lambda self, node, spot: self._call(node, spot),
}
