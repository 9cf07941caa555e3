"""Lists, sets, dicts and tuples as they are written down, comprehensions among them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mragaudit.hookaudit.interpreter.assignment import Assignment
from mragaudit.hookaudit.interpreter.machine import Spot
from mragaudit.hookaudit.interpreter.state import Clone, Seq
from mragaudit.hookaudit.interpreter.values import (
    Changed,
    Each,
    One,
    Opaque,
    Part,
    Ref,
    Same,
    Segment,
    Spread,
    Tup,
    Value,
    describe,
    flags_of,
)


class Displays(Assignment):
    """What displays and comprehensions make."""

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
            copy = self._clone_of(value, spot) if key is None and not segments and base is None else None
            if copy is not None:
                base = self.allocate(copy, spot.state)
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

    def _clone_of(self, value: Value, spot: Spot) -> Clone | None:
        """Return a copy of a part of the subject, or of a copy of one."""
        thing = spot.state.heap.get(value.name) if isinstance(value, Ref) else None
        return Clone(value) if isinstance(value, Part) else thing if isinstance(thing, Clone) else None

    def laid_over(self, left: Value, right: Value, spot: Spot) -> Value | None:
        """Return a copy of a dict of the subject with another laid over it; None where it is no such dict."""
        thing = spot.state.heap.get(right.name) if isinstance(right, Ref) else None
        if not isinstance(left, Same | Part) or not isinstance(thing, Seq) or thing.kind != "dict":
            return None
        copy = self.shallow_copy(left, spot)
        for segment in thing.segments:
            self.write_pairs(copy, segment, spot)
        return copy

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
        frame = self.new_frame(spot.frame.module, parent=spot.frame, func=spot.frame.func, comprehension=True)
        inner = Spot(frame, spot.state)
        inner.state.own(frame.number)
        segments = self._generate(node.generators, inner, lambda at: self.evaluate(node.elt, at))
        kind = "set" if isinstance(node, ast.SetComp) else "list"
        return self.new_list(segments, spot, kind=kind)

    def _dict_comp(self, node: ast.DictComp, spot: Spot) -> Value:
        frame = self.new_frame(spot.frame.module, parent=spot.frame, func=spot.frame.func, comprehension=True)
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
            return (Each(self.base_of(source, spot), inner[0].value, exact),)
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
