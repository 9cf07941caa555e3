"""Reading of attributes, items and slices, and shallow copies."""

from __future__ import annotations

# ruff: noqa: PLR0911, C901  # an interpreter has one way out for each kind of value
import ast
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mragaudit.hookaudit.interpreter.machine import CallArgs, Spot
from mragaudit.hookaudit.interpreter.operators import Operators
from mragaudit.hookaudit.interpreter.state import ELEMENT, Clone, Instance, Seq, Step, merge_states, owners_of, settle
from mragaudit.hookaudit.interpreter.values import (
    Bound,
    Changed,
    Choice,
    ClassRef,
    Const,
    External,
    Func,
    Index,
    Method,
    ModuleRef,
    One,
    Opaque,
    Part,
    Ref,
    Same,
    Super,
    Tup,
    Unknown,
    Value,
    View,
    describe,
    flags_of,
    is_subject,
    outside,
    with_flags,
)
from mragaudit.hookaudit.scopes import Binding


class Access(Operators):
    """What is read out of values."""

    # provided by the objects
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

    def guarded(self, binding: Binding, name: str, *, before: Value | None, spot: Spot) -> Value | None:
        """Return what a name holds after a binding, as its guards have it."""
        raise NotImplementedError

    def with_each(self, choice: Choice, spot: Spot, act: Callable[[Value, Spot], Value]) -> Value:
        """Do something to one of several values: what it leaves of each may be, and need not be."""
        places = [(item, Spot(spot.frame, spot.state.fork())) for item in choice.values]
        outcomes = [act(item, at) for item, at in places]
        spot.state.become(merge_states([at.state for _, at in places]))
        return self.merged(outcomes)

    # attributes
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
                return outside(f"{owner.name}.{name}")
            case Same() | Part():
                return self._subject_attribute(owner, name, node=node, spot=spot)
            case Super():
                return self.super_attribute(owner, name, node=node, spot=spot)
            case Choice():
                results = [self.attribute(item, name, node=node, spot=spot) for item in owner.values]
                return self.merged(results)
            case Const() if name in {"value", "major", "minor"} and not _is_method_name(name, node):
                return _of_constant(owner, name)
            case Changed() | Unknown() if not _is_method_name(name, node):
                return owner
            case Opaque(settled=True) if not _is_method_name(name, node):
                return Opaque(f"`.{name}` of {owner.why}", settled=True)
            case Opaque() if not _is_method_name(name, node):
                return self.setting(f"value:{describe(node)}", describe(node), None)
            case _:
                self.notes.used |= flags_of(owner)
                return Method(owner, name)

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
        here = spot.frame.module
        for (alias, attribute), patches in here.scope.patches.items():
            at = Spot(self.module_frame(here), spot.state)
            if attribute != name or not isinstance(target := self.lookup(alias, at), ModuleRef):
                continue
            for patch in patches if target.module is owner.module else ():
                if self.reading_line is None or getattr(patch.node, "lineno", 0) < self.reading_line:
                    found = self.guarded(patch, name, before=found, spot=at)
        if found is not None:
            return found
        inner = self.project.find_module(f"{owner.module.name}.{name}")
        return ModuleRef(inner) if inner else External(f"{owner.module.name}.{name}")

    def type_of(self, owner: Value, spot: Spot) -> Value | None:
        """Return the class of a value, where it can be told."""
        thing = spot.state.heap.get(owner.name) if isinstance(owner, Ref) else None
        if isinstance(thing, Instance):
            return ClassRef(thing.cls)
        if not isinstance(owner, Same):
            return None
        declared = owner.hint.name if owner.hint else ""
        plain = "str" if self.text_subject else "list"
        return External(plain) if declared in {"", plain} or (plain == "list" and "Sequence" in declared) else None

    def _subject_attribute(self, owner: Same | Part, name: str, *, node: ast.AST, spot: Spot) -> Value:
        if name == "__class__":
            return self.type_of(owner, spot) or Part(owner, ("attr", name))
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
        if self._is_text(settled) and isinstance(settled, Same | Part) and step == Const(None):
            self.decide(flags, describe(node))
            ends = ((lower, part.lower, 0), (upper, part.upper, None))
            return Part(settled, ("span", tuple(_bound(bound, written, at) for bound, written, at in ends)))
        if is_subject(settled):
            self.decide(flags, describe(node))
            return self.changed(f"`{describe(node)}` keeps only a part", node, spot)
        return Opaque("a slice", flags_of(owner) | flags)

    def _is_text(self, value: Value) -> bool:
        return self.text_subject and (isinstance(value, Same) or (isinstance(value, Part) and value.step[0] == "span"))

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


def _is_method_name(name: str, node: ast.AST) -> bool:
    """Return whether an attribute is being called."""
    return isinstance(node, ast.Call) or name.startswith("__")


def _of_constant(owner: Const, name: str) -> Const:
    """Return a part of a version; a member of an enumeration stands for its value."""
    if isinstance(owner.value, tuple) and name != "value":
        return Const(owner.value[name == "minor"], owner.flags)
    return owner


def _bound(value: Value, written: ast.expr | None, at: int | None) -> Any:
    """Return one end of a slice: None for that of the text itself, else what is equal only where the places are."""
    if isinstance(value, Const):
        return None if value.value in (at, None) else value.value
    return (written.id, value) if isinstance(written, ast.Name) else (value, getattr(written, "col_offset", 0), written)


def _is_length_of(value: Value, owner: Value) -> bool:
    if isinstance(value, Const):
        return bool(value.value == sys.maxsize)
    return isinstance(value, View) and value.how == "length" and value.inner[0] == owner
