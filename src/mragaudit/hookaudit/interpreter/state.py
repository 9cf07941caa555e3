"""What is known at one point of a function: variables, objects, and which objects were changed in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from mragaudit.hookaudit.interpreter.values import (
    Changed,
    Const,
    Each,
    Func,
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
    is_subject,
    merge_values,
)
from mragaudit.hookaudit.symbols import ClassInfo, Module

Step: TypeAlias = tuple[str, Any]
ELEMENT: Step = ("elem", None)


@dataclass(frozen=True, slots=True)
class Seq:
    """A list, set, generator or dict; the elements of a dict are pairs."""

    kind: str
    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class Instance:
    """An object of a class of the tree."""

    cls: ClassInfo
    attributes: dict[str, Value]


def class_key(info: ClassInfo) -> str:
    """Return the name under which the heap holds what is written to a class."""
    return f"class {id(info)}"


@dataclass(frozen=True, slots=True)
class Clone:
    """A copy of a part of the subject, with what was written to it since."""

    original: Same | Part
    deep: bool = False
    writes: tuple[tuple[Step, Value], ...] = ()

    def written(self, step: Step) -> Value | None:
        """Return what was last written at a step."""
        return next((value for place, value in reversed(self.writes) if place == step), None)


HeapObject: TypeAlias = Seq | Instance | Clone


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One call of a function, or the body of a module or class."""

    number: int
    module: Module
    parent: Frame | None = None
    func: Func | None = None
    cls: ClassInfo | None = None
    comprehension: bool = False
    results: Ref | None = None
    """Where a generator collects what it yields."""


@dataclass(slots=True)
class State:
    """Variables by frame, objects, in-place changes; copied at every branch."""

    frames: dict[int, dict[str, Value]] = field(default_factory=dict)
    heap: dict[str, HeapObject] = field(default_factory=dict)
    touched: dict[str, Changed | Unknown] = field(default_factory=dict)
    guarded: bool = False
    """Whether the path was chosen by looking at the subject."""
    exceptional: bool = False
    """Whether the path starts in an exception handler."""
    risky: bool = False
    """Whether what is handled there comes from code outside the tree that was given the subject."""
    owned: set[int] = field(default_factory=set)
    """Frames whose variables no other state shares; the others are copied before they are written to."""

    def fork(self) -> State:
        """Return a copy that can go its own way."""
        self.owned.clear()
        heap, touched = dict(self.heap), dict(self.touched)
        return State(dict(self.frames), heap, touched, self.guarded, self.exceptional, self.risky)

    def names(self, number: int) -> Mapping[str, Value]:
        """Return the variables of a frame, to be read."""
        return self.frames.get(number, {})

    def own(self, number: int) -> dict[str, Value]:
        """Return the variables of a frame, to be written to."""
        if number not in self.owned:
            self.frames[number] = dict(self.frames.get(number, {}))
            self.owned.add(number)
        return self.frames[number]

    def become(self, other: State) -> None:
        """Take over what another state holds, but not how it was reached."""
        other.owned.clear()
        self.owned.clear()
        self.frames, self.heap, self.touched = dict(other.frames), other.heap, other.touched

    def touch(self, owners: Iterable[str], change: Changed | Unknown) -> None:
        """Note that objects were changed in place, or may have been; a sure change stays."""
        for owner in owners:
            if isinstance(change, Changed) or owner not in self.touched:
                self.touched[owner] = change


def merge_states(states: list[State]) -> State:
    """Return what holds after any of the paths."""
    merged = states[0]
    for other in states[1:]:
        merged = _merge_two(merged, other)
    return merged


def group_states(states: list[State]) -> list[State]:
    """Return at most two states: that of the ordinary paths, and that of the paths through a handler."""
    ordinary = [state for state in states if not state.exceptional]
    handled = [state for state in states if state.exceptional]
    return [merge_states(group) for group in (ordinary, handled) if group]


def _merge_two(left: State, right: State) -> State:
    frames = {}
    for number in left.frames.keys() | right.frames.keys():
        ours, theirs = left.frames.get(number, {}), right.frames.get(number, {})
        frames[number] = ours if ours is theirs else _merge_names(ours, theirs, left=left, right=right)
    left.owned.clear()
    right.owned.clear()
    heap = dict(right.heap)
    for name, thing in left.heap.items():
        if heap.get(name) is not thing:
            heap[name] = _merge_objects(thing, heap[name], left=left, right=right) if name in heap else thing
    merged = State(frames, heap, dict(right.touched), left.guarded and right.guarded)
    for owner, change in left.touched.items():
        merged.touch([owner], change)
    merged.exceptional = left.exceptional and right.exceptional
    merged.risky = left.risky or right.risky
    return merged


def _merge_names(ours: dict[str, Value], theirs: dict[str, Value], *, left: State, right: State) -> dict[str, Value]:
    merged = dict(theirs)
    for name, value in ours.items():
        other = merged.get(name)
        if other is not value:
            merged[name] = merge_values(as_same(value, left), as_same(other, right)) if other is not None else value
    return merged


def as_same(value: Value, state: State) -> Value:
    """Return the subject in place of a list that equals it, so that it can be merged with the subject."""
    if not isinstance(value, Ref) or not isinstance(state.heap.get(value.name), Seq):
        return value
    settled = settle(value, state)
    return settled if isinstance(settled, Same) else value


def _merge_objects(ours: HeapObject, theirs: HeapObject, *, left: State, right: State) -> HeapObject:
    if ours is theirs or ours == theirs:
        return ours
    if isinstance(ours, Instance) and isinstance(theirs, Instance):
        return Instance(ours.cls, _merge_names(ours.attributes, theirs.attributes, left=left, right=right))
    if isinstance(ours, Seq) and isinstance(theirs, Seq):
        return Seq(ours.kind, merge_segments(ours.segments, theirs.segments))
    if isinstance(ours, Clone) and isinstance(theirs, Clone):
        return replace(ours, writes=ours.writes + tuple(write for write in theirs.writes if write not in ours.writes))
    return ours


def merge_segments(left: tuple[Segment, ...], right: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Return the elements of either list; those that only one has are marked as not always there."""
    shared = 0
    while shared < min(len(left), len(right)) and left[shared] == right[shared]:
        shared += 1
    ours, theirs = left[shared:], right[shared:]
    if len(ours) == len(theirs) and all(isinstance(item, One) for item in (*ours, *theirs)):
        pairs = zip(ours, theirs, strict=True)
        return (*left[:shared], *(One(merge_values(one.value, other.value)) for one, other in pairs))
    return (*left[:shared], *(Each(Opaque("a condition"), item.value, exact=False) for item in (*ours, *theirs)))


def root_of(value: Same | Part) -> Same:
    """Return the whole of which a value is a part."""
    while isinstance(value, Part):
        value = value.owner
    return value


def owners_of(value: Value) -> list[Same | Part]:
    """Return the subject or its parts over which an iteration runs."""
    if isinstance(value, Same | Part):
        return [value]
    if isinstance(value, View):
        return [owner for inner in value.inner for owner in owners_of(inner)]
    return []


def settle(value: Value, state: State) -> Value:
    """Return the value with its containers looked through: whether they equal the subject, as things stand."""
    match value:
        case Same():
            return _settle_same(value, state)
        case Ref(name=name):
            return _settle_object(value, state.heap[name], state) if name in state.heap else Unknown("a lost object")
        case Text():
            return _settle_text(value, state)
        case View():
            return _settle_view(value, state)
        case Tup():
            return _settle_wrapped([settle(item, state) for item in value.items], "a tuple")
        case _:
            return value


def _settle_view(view: View, state: State) -> Value:
    """Look through the values of a dict of the hook's own, which may have dropped elements of the subject."""
    inner = view.inner[0] if view.inner else None
    thing = state.heap.get(inner.name) if isinstance(inner, Ref) else None
    if not isinstance(thing, Seq):
        return view
    position = 0 if view.how == "keys" else 1
    pairs = [segment.value for segment in thing.segments]
    values = [settle(pair.items[position] if isinstance(pair, Tup) else pair, state) for pair in pairs]
    changed = next((value for value in values if isinstance(value, Changed)), None)
    if changed is not None or not any(map(is_subject, values)):
        return changed or view
    return Unknown("goes through a dict, which may drop or reorder elements")


def _settle_same(value: Same, state: State) -> Value:
    changes = [state.touched[owner] for owner in sorted(value.tops | value.elements) if owner in state.touched]
    changes.sort(key=lambda change: isinstance(change, Unknown))
    return changes[0] if changes else value


def _settle_object(ref: Ref, thing: HeapObject, state: State) -> Value:
    if isinstance(thing, Clone):
        return _settle_clone(thing, state)
    if isinstance(thing, Instance):
        values = [settle(value, state) for name, value in thing.attributes.items()]
        return _settle_wrapped(values, f"an object of {thing.cls.name}", parts=_own_parts(thing, state))
    if thing.kind == "dict":
        return _settle_dict(ref, thing, state)
    return _settle_list(ref, thing, state)


def _settle_clone(clone: Clone, state: State) -> Value:
    doubt: Value | None = None
    for step in dict(clone.writes):
        written = settle(clone.written(step) or Opaque(), state)
        if isinstance(written, Unknown):
            doubt = written
        elif written != Part(clone.original, step):
            return written if isinstance(written, Changed) else Changed("a copy gets another value")
    return doubt or clone.original


def _settle_list(ref: Ref, thing: Seq, state: State) -> Value:
    if len(thing.segments) == 1:
        found = _single(ref, thing.segments[0], state)
        if found is not None:
            return found
    values = [settle(segment.value, state) for segment in thing.segments]
    for kind in (Changed, Unknown):
        for value in values:
            if isinstance(value, kind):
                return value
    parts = [s for s, v in zip(thing.segments, values, strict=True) if isinstance(v, Same | Part)]
    if parts and all(isinstance(s, Each) and isinstance(s.source, Opaque) for s in parts):
        return Unknown("puts parts of the input together in a loop that cannot be followed")
    if any(map(is_subject, values)):
        return Changed("a list of other make-up")
    return Opaque("a list of its own", flags=ref.flags, truthy=bool(values) or None)


def _single(ref: Ref, segment: Segment, state: State) -> Value | None:
    if isinstance(segment, Spread):
        value = settle(segment.value, state)
        return replace(value, tops=frozenset({ref.name}), copied=True) if isinstance(value, Same) else value
    if not isinstance(segment, Each):
        return None
    value = _settle_pair(segment.value, state)
    for owner in owners_of(segment.source):
        if value == Part(owner, ELEMENT) or value == Tup((Part(owner, ("key", None)), Part(owner, ("value", None)))):
            if not segment.exact:
                return Changed("only some of the elements are kept")
            return _copy_of(owner, ref.name, state)
    if isinstance(value, Changed | Unknown):
        return value
    return Changed("other elements take the place of its own") if owners_of(segment.source) else None


def _settle_pair(value: Value, state: State) -> Value:
    """Return the settled value; a pair of key and value stays a pair."""
    return Tup(tuple(settle(item, state) for item in value.items)) if isinstance(value, Tup) else settle(value, state)


def _copy_of(owner: Same | Part, name: str, state: State) -> Value:
    if isinstance(owner, Part):
        return owner
    return _settle_same(replace(owner, tops=frozenset({name}), copied=True), state)


def _settle_dict(ref: Ref, thing: Seq, state: State) -> Value:
    if len(thing.segments) == 1 and not isinstance(thing.segments[0], One):
        segment = thing.segments[0]
        found = _single(ref, segment, state)
        if found is not None and not isinstance(found, Tup):
            return found
    pairs = [segment.value for segment in thing.segments if isinstance(segment.value, Tup)]
    values = [settle(pair.items[1], state) for pair in pairs]
    values += [settle(segment.value, state) for segment in thing.segments if not isinstance(segment.value, Tup)]
    parts = {pair.items[0].value: pair.items[1] for pair in pairs if isinstance(pair.items[0], Const)}
    return _settle_wrapped(values, "a dict", parts=_parts_by_name(parts))


def _own_parts(thing: Instance, state: State) -> set[Same | Part]:
    owners = _parts_by_name({name: settle(value, state) for name, value in thing.attributes.items()})
    declared = {name for name in thing.cls.scope.bindings if not name.startswith("_")}
    names = declared | _annotated(thing.cls)
    complete = bool(owners) and names <= set(thing.attributes)
    return owners if not complete else {*owners, COMPLETE}


COMPLETE = Same(tops=frozenset({"every field"}), elements=frozenset())


def _annotated(cls: ClassInfo) -> set[str]:
    import ast  # noqa: PLC0415  # only for this rare case

    return {
        node.target.id
        for node in cls.node.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def _parts_by_name(values: dict[Any, Value]) -> set[Same | Part]:
    """Return the one owner whose like-named parts the values are, if there is one."""
    owners: set[Same | Part] = set()
    for name, value in values.items():
        if not isinstance(value, Part) or value.step[0] not in {"item", "attr"} or value.step[1] != name:
            return set()
        owners.add(value.owner)
    return owners if len(owners) == 1 else set()


def _settle_wrapped(values: list[Value], how: str, parts: set[Same | Part] | None = None) -> Value:
    if parts and COMPLETE in parts:
        return next(owner for owner in parts if owner is not COMPLETE)
    if parts:
        return Unknown(f"rebuilds {how} from fields of the input; whether from all of them cannot be told")
    for kind in (Changed, Unknown):
        for value in values:
            if isinstance(value, kind):
                return value
    if any(isinstance(value, Same) for value in values):
        return Unknown(f"hands the unchanged input on inside {how}; the hook map does not say where to look")
    return Changed(f"{how} takes its place") if any(map(is_subject, values)) else Opaque(how)


def _settle_text(text: Text, state: State) -> Value:
    if len(text.pieces) == 1:
        found = _single(Ref("text"), text.pieces[0], state)
        if found is not None:
            return found
    values = [settle(piece.value, state) for piece in text.pieces]
    for value in values:
        if isinstance(value, Changed):
            return value
    doubt = next((value for value in values if isinstance(value, Unknown)), None)
    if doubt and not any(isinstance(value, Const | Same | Part) for value in values):
        return doubt
    return Changed("text is added to it") if any(map(is_subject, values)) else Opaque("a text of its own")
