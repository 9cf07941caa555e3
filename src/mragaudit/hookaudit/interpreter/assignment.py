"""Writing to names, attributes and items, and what it does to the subject."""

from __future__ import annotations

import ast
from dataclasses import replace

from mragaudit.hookaudit.interpreter.access import Access
from mragaudit.hookaudit.interpreter.machine import CallArgs, Spot
from mragaudit.hookaudit.interpreter.state import (
    Clone,
    Frame,
    Instance,
    Seq,
    Step,
    class_key,
    owners_of,
    root_of,
    settle,
)
from mragaudit.hookaudit.interpreter.values import (
    Choice,
    ClassRef,
    Const,
    Each,
    Func,
    Index,
    One,
    Opaque,
    Part,
    Ref,
    Same,
    Segment,
    Tup,
    Unknown,
    Value,
    describe,
)
from mragaudit.hookaudit.symbols import ClassInfo


class Assignment(Access):
    """What assignments write."""

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
            self.with_each(owner, spot, lambda item, at: self._written(item, step, value, node=node, spot=at, key=key))
        elif isinstance(owner, Same | Part):
            self._write_subject(owner, step, value, node=node, spot=spot)
        elif isinstance(owner, ClassRef) and step[0] == "attr":
            before = spot.state.heap.get(class_key(owner.info))
            written = before.attributes if isinstance(before, Instance) else {}
            spot.state.heap[class_key(owner.info)] = Instance(owner.info, {**written, step[1]: value})
        elif isinstance(owner, Ref):
            self._write_object(owner, step, value, node=node, spot=spot, key=key)

    def _written(
        self, owner: Value, step: Step, value: Value, *, node: ast.AST, spot: Spot, key: Value | None
    ) -> Value:
        self.write(owner, step, value, node=node, spot=spot, key=key)
        return owner

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
        elif isinstance(thing, Instance) and (setter := self._setter_of(thing, step)) is not None:
            self.call(setter, CallArgs((ref, value)), node=node, spot=spot)
        elif isinstance(thing, Instance) and step[0] == "attr":
            spot.state.heap[ref.name] = Instance(thing.cls, {**thing.attributes, step[1]: value})
        elif isinstance(thing, Seq) and thing.kind == "dict":
            pair = One(Tup((key if key is not None else Const(step[1]), value)))
            segments = tuple(s for s in thing.segments if not _same_key(s, pair))
            spot.state.heap[ref.name] = Seq("dict", (*segments, pair))
        elif isinstance(thing, Seq):
            self._write_list(ref, thing, step=step, value=value, node=node, spot=spot)

    def _setter_of(self, thing: Instance, step: Step) -> Func | None:
        """Return what runs when a property is written to."""
        for entry in self.project.order(thing.cls):
            if isinstance(entry, ClassInfo) and step[0] == "attr" and step[1] in entry.scope.bindings:
                node = entry.scope.setters.get(step[1])
                return Func(node, entry.module, None, entry) if node is not None else None
        return None

    def _write_list(self, ref: Ref, thing: Seq, *, step: Step, value: Value, node: ast.AST, spot: Spot) -> None:
        settled = settle(ref, spot.state)
        new = settle(value, spot.state)
        if isinstance(settled, Same | Part) and new == Part(settled, step):
            return
        position = step[1]
        entry = thing.segments[0] if len(thing.segments) == 1 else None
        if isinstance(position, Index) and isinstance(entry, Each) and _runs_along(entry, position):
            spot.state.heap[ref.name] = Seq(thing.kind, (Each(entry.source, value),))
            return
        if isinstance(position, int) and all(isinstance(s, One) for s in thing.segments):
            if -len(thing.segments) <= position < len(thing.segments):
                segments = list(thing.segments)
                segments[position] = One(value)
                spot.state.heap[ref.name] = Seq(thing.kind, tuple(segments))
            return
        if step[0] == "elem" and isinstance(settled, Same | Part | Opaque) and not isinstance(new, Unknown):
            new = self.changed("an element is replaced", node, spot)
        spot.state.heap[ref.name] = Seq(thing.kind, (*thing.segments, One(new)))


def _runs_along(entry: Each, position: Index) -> bool:
    """Return whether a running position meets every element of a list that has one for each of the source's."""
    owners = owners_of(entry.source)
    return entry.exact and bool(owners) and owners == owners_of(position.source)


def _same_key(left: Segment, right: Segment) -> bool:
    return (
        isinstance(left, One)
        and isinstance(left.value, Tup)
        and isinstance(right.value, Tup)
        and left.value.items[0] == right.value.items[0]
    )


def _nonlocal_names(func: Func) -> frozenset[str]:
    body = [] if isinstance(func.node, ast.Lambda) else func.node.body
    return frozenset(name for node in body if isinstance(node, ast.Nonlocal | ast.Global) for name in node.names)
