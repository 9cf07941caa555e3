"""What a loop over a value meets: known elements, or one that stands for all."""

from __future__ import annotations

# ruff: noqa: PLR0911  # an interpreter has one way out for each kind of value
import ast
from dataclasses import replace
from typing import Any

from mragaudit.hookaudit.interpreter.machine import Spot
from mragaudit.hookaudit.interpreter.state import ELEMENT, Seq, settle
from mragaudit.hookaudit.interpreter.truth import Truth
from mragaudit.hookaudit.interpreter.values import (
    Changed,
    Const,
    Each,
    Growing,
    Index,
    One,
    Opaque,
    Part,
    Ref,
    Same,
    Segment,
    Spread,
    Text,
    Tup,
    Unknown,
    Value,
    View,
    flags_of,
    merge_values,
)

UNROLLED = 24


class Iteration(Truth):
    """What values yield when they are looped over."""

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
        if not isinstance(value, Text | Ref) or self._holds_copies(value, spot):
            return value
        settled = settle(value, spot.state)
        return settled if isinstance(settled, Same | Part) or isinstance(value, Text) else value

    def _holds_copies(self, value: Value, spot: Spot) -> bool:
        """Return whether a list holds copies of its own, which equal the subject's elements and are not these."""
        thing = spot.state.heap.get(value.name) if isinstance(value, Ref) else None
        if not isinstance(thing, Seq) or len(thing.segments) != 1:
            return False
        entry = thing.segments[0]
        return isinstance(entry, Each) and isinstance(entry.value, Ref)

    def base_of(self, source: Value, spot: Spot) -> Value:
        """Return what has one element for each of the source's, as far down as that can be told."""
        thing = spot.state.heap.get(source.name) if isinstance(source, Ref) else None
        if isinstance(source, View) and source.how in {"zip", "enumerate"}:
            return View(source.how, tuple(self.base_of(item, spot) for item in source.inner))
        if not isinstance(thing, Seq) or len(thing.segments) != 1:
            return source
        entry = thing.segments[0]
        return self.base_of(entry.source, spot) if isinstance(entry, Each) and entry.exact else source

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
        thing = spot.state.heap.get(ref.name)
        if isinstance(thing, Seq) and len(thing.segments) == 1 and isinstance(thing.segments[0], Each):
            return thing.segments[0].value  # so that what is written to it reaches the object that it is
        if isinstance(settled, Same | Part | Changed | Unknown):
            return self.element(settled, node, spot)
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
