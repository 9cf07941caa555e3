"""The parts of the abstract interpreter that all others use: names, settings, budget, and what a run notes down."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mragaudit.hookaudit.interpreter.state import Frame, HeapObject, Seq, State, settle
from mragaudit.hookaudit.interpreter.values import (
    NO_FLAGS,
    Changed,
    ClassRef,
    Const,
    External,
    Hint,
    Opaque,
    Part,
    Ref,
    Same,
    Segment,
    Tup,
    Unknown,
    Value,
    describe,
    flags_of,
    is_subject,
    merge_values,
)
from mragaudit.hookaudit.symbols import ClassInfo, Module, Outside, Project

MAX_STEPS = 15_000
MAX_DEPTH = 24


KNOWN: dict[str, Value] = {"__debug__": Const(True), "__name__": Const("a module"), "NotImplemented": Const(None)}
TYPE_CHECKING = Const(False)


class GiveUp(Exception):  # noqa: N818  # a verdict, not an error: the hook is too large to follow
    """The analysis of one hook ends without an answer."""


class Abrupt(Exception):  # noqa: N818  # control flow of the audited program
    """An expression never comes to a value, because what it calls always raises."""


@dataclass(slots=True)
class Setting:
    """Something that decides and that a deployment can choose."""

    key: str
    text: str
    """How the hook reads it."""
    default: Value | None
    """None where the tree holds no default."""
    tests: list[str] = field(default_factory=list)
    """Expressions of the hook in which it decided."""
    early_tests: list[str] = field(default_factory=list)
    decided: bool = False
    compared: bool = False
    """Whether it was compared with a constant: one value among several that are told apart."""
    empty: bool = False
    """Whether its default is nothing: None, an empty text or container."""
    early: bool = True
    """Whether it was only met while the object was set up."""

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off, or something or nothing, and not one value among many."""
        return self.empty or (isinstance(self.default, Const) and isinstance(self.default.value, bool))

    @property
    def condition(self) -> str:
        """The test that decided, as the hook writes it; without one, how it reads the setting."""
        return next(iter([*self.tests, *([] if self.tests or not self.early else self.early_tests)]), self.text)


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception that leaves a statement."""

    name: str
    state: State
    line: int
    file: str


@dataclass(frozen=True, slots=True)
class Returned:
    """A way out of a function."""

    value: Value
    state: State
    line: int


@dataclass(frozen=True, slots=True)
class Spot:
    """Where evaluation stands."""

    frame: Frame
    state: State


@dataclass(frozen=True, slots=True)
class CallArgs:
    """Evaluated arguments."""

    positional: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)

    def all(self) -> list[Value]:
        """Return all arguments."""
        return [*self.positional, *self.keywords.values()]

    def get(self, position: int, name: str = "") -> Value | None:
        """Return an argument by position or name."""
        if position < len(self.positional):
            return self.positional[position]
        return self.keywords.get(name)


@dataclass(slots=True)
class Notes:
    """What a run noted down beside values."""

    settings: dict[str, Setting] = field(default_factory=dict)
    discarded: Changed | None = None
    """A change that was computed and not returned."""
    dead_line: int | None = None
    fail_open_line: int | None = None
    via: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    """Settings whose value goes into a call, and that are thus no mere switches."""
    brought: bool = False
    """Whether a call brought the subject, where the hook map says that calls do."""
    steps: int = 0
    risks: int = 0
    """Calls that leave the tree with the subject."""


class Machine:
    """Names, settings and bookkeeping of one run of one hook under one assignment of settings."""

    def __init__(
        self,
        project: Project,
        *,
        assume: dict[str, Value] | None = None,
        text_subject: bool = True,
        sources: frozenset[str] = frozenset(),
        transparent: tuple[str, ...] = (),
        calls_through: Mapping[str, int] | None = None,
        records: tuple[str, ...] = (),
        getters: Mapping[str, str] | None = None,
        setters: Mapping[str, str] | None = None,
    ) -> None:
        self.project = project
        self.assume = assume or {}
        self.text_subject = text_subject
        self.sources = sources
        self.transparent = transparent
        self.calls_through = calls_through or {}
        self.records = records
        self.getters = getters or {}
        self.setters = setters or {}
        self.hook_node: ast.AST | None = None
        self.notes = Notes()
        self.frames: dict[int, Frame] = {}
        self.sinks: list[list[Raised]] = [[]]
        self.stack: list[tuple[Any, ...]] = []
        self.setting_up = 0
        self.reading_line: int | None = None
        """Line of the module or class body that runs; None while the hook does."""
        self._counter = 0
        self._module_frames: dict[Module, Frame] = {}
        self._globals: dict[tuple[int, str], Value] = {}
        self._evaluating: set[tuple[int, str]] = set()

    # what the other parts provide
    def evaluate(self, node: ast.expr, spot: Spot) -> Value:
        """Return the value of an expression."""
        raise NotImplementedError

    def call(self, func: Value, args: CallArgs, *, node: ast.AST, spot: Spot) -> Value:
        """Return what a call returns."""
        raise NotImplementedError

    def bound_value(self, name: str, frame: Frame, state: State) -> Value | None:
        """Return what a module or class body binds a name to."""
        raise NotImplementedError

    # bookkeeping
    def begin_hook(self, node: ast.AST | None) -> None:
        """Forget what was noted while the object was set up; only its settings count from there."""
        self.hook_node = node
        self.setting_up = 0
        self.sinks = [[]]
        self.notes = Notes(settings=self.notes.settings, used=self.notes.used, steps=self.notes.steps)

    def step(self) -> None:
        """Count one step; raises GiveUp when the hook is too large to follow."""
        self.notes.steps += 1
        if self.notes.steps > MAX_STEPS:
            raise GiveUp(f"follows more than {MAX_STEPS} expressions")

    def changed(self, what: str, node: ast.AST, spot: Spot, *, truthy: bool | None = None) -> Changed:
        """Return a change with its place."""
        return Changed(what, getattr(node, "lineno", 0), spot.frame.module.source.file, truthy)

    def unknown(self, reason: str, node: ast.AST, spot: Spot) -> Unknown:
        """Return a doubt with its place."""
        return Unknown(reason, getattr(node, "lineno", 0), spot.frame.module.source.file)

    def merged(self, values: list[Value]) -> Value:
        """Return what holds of any of several values."""
        result = values[0]
        for value in values[1:]:
            result = merge_values(result, value)
        return result

    def _derived(self, what: str, values: list[Value], *, node: ast.AST, spot: Spot, combine: bool = False) -> Value:
        """Return what is computed from values: a change where the subject is among them."""
        settled = [settle(value, spot.state) for value in values]
        doubt = next((value for value in settled if isinstance(value, Unknown)), None)
        if doubt is not None and not any(isinstance(value, Same | Part | Changed) for value in settled):
            return doubt
        if any(map(is_subject, settled)):
            return self.changed(what, node, spot)
        flags = frozenset().union(*map(flags_of, values))
        unsettled = [isinstance(value, Opaque | External) and not getattr(value, "settled", False) for value in values]
        settled_later = any(isinstance(value, Opaque) and value.settled for value in values)
        settled_later = settled_later or (bool(values) and not any(unsettled) and not flags)  # of constants alone
        return Opaque(what if combine else "a value computed", flags, settled=settled_later)

    def new_frame(self, module: Module, **fields: Any) -> Frame:
        """Return a frame with a number of its own."""
        self._counter += 1
        frame = Frame(self._counter, module, **fields)
        self.frames[frame.number] = frame
        return frame

    def allocate(self, thing: HeapObject, state: State) -> Ref:
        """Put an object into the heap."""
        self._counter += 1
        ref = Ref(f"#{self._counter}")
        state.heap[ref.name] = thing
        return ref

    def new_list(self, segments: tuple[Segment, ...], spot: Spot, *, kind: str = "list") -> Ref:
        """Put a list or dict into the heap."""
        return self.allocate(Seq(kind, segments), spot.state)

    # settings
    def setting(
        self, key: str, text: str, default: Value | None, *, heap: dict[str, HeapObject] | None = None
    ) -> Value:
        """Return a setting's value in this run, resting on its key; `heap` holds a default that is a container."""
        found = self.notes.settings.get(key)
        if found is None:
            self.notes.settings[key] = found = Setting(key, text, default, empty=_is_empty(default, heap or {}))
        if found.early and not self.setting_up:
            found.text, found.early = text, False
        if key in self.assume:
            return self.assume[key]
        if default is None:
            return Opaque(f"`{text}` has no default in the tree", frozenset({key}))
        return _flagged(default, key)

    def reread(self, value: Value, text: str) -> None:
        """Note how the hook reads a value that rests on settings."""
        for key in flags_of(value):
            found = self.notes.settings.get(key)
            if found and found.early and not self.setting_up:
                found.text, found.early = text, False

    def decide(self, flags: frozenset[str], text: str) -> None:
        """Note that settings chose the way."""
        for key in flags:
            found = self.notes.settings.get(key)
            if found is None:
                continue
            (found.early_tests if self.setting_up else found.tests).append(text)
            found.decided = True

    # names
    def module_frame(self, module: Module) -> Frame:
        """Return the frame of a module body."""
        if module not in self._module_frames:
            self._module_frames[module] = self.new_frame(module)
        return self._module_frames[module]

    def class_frame(self, info: ClassInfo) -> Frame:
        """Return a frame for evaluating what a class body holds."""
        key = (id(info), "<class>")
        if key not in self._globals:
            frame = self.new_frame(info.module, cls=info)
            self._globals[key] = Const(frame.number)
        number = self._globals[key]
        return self.frames[number.value if isinstance(number, Const) else 0]

    def lookup(self, name: str, spot: Spot) -> Value:
        """Return what a name stands for."""
        frame: Frame | None = spot.frame
        while frame is not None:
            names = spot.state.names(frame.number)
            if name in names:
                return names[name]
            if frame.cls is not None and frame.func is None and (found := self.body_name(name, frame, spot.state)):
                return found
            frame = frame.parent
        module = self.module_frame(spot.frame.module)
        found = spot.state.names(module.number).get(name) or self.body_name(name, module, spot.state)
        if found is not None:
            return found
        return KNOWN.get(name) or self._starred(name, spot)

    def _starred(self, name: str, spot: Spot) -> Value:
        for target in self.project.star_targets(spot.frame.module):
            if isinstance(target, Module) and name in target.scope.bindings and target.exports(name):
                found = self.body_name(name, self.module_frame(target), spot.state)
                if found is not None:
                    return found
        return External(name)

    def body_name(self, name: str, frame: Frame, state: State) -> Value | None:
        """Return what a module or class body binds a name to, worked out once a run."""
        key = (frame.number, name)
        known = self._globals.get(key)
        if known is not None and not (isinstance(known, Ref) and known.name not in state.heap):
            return known
        if key in self._evaluating:
            return Opaque(f"`{name}` is defined by itself")
        self._evaluating.add(key)
        try:
            value = self.bound_value(name, frame, state)
        finally:
            self._evaluating.discard(key)
        if value is not None:
            self._globals[key] = value
        return value

    # annotations
    def hint(self, annotation: ast.expr | None, module: Module) -> Hint | None:
        """Return what an annotation says, without evaluating it."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except (SyntaxError, ValueError, RecursionError):
                return None
        if isinstance(annotation, ast.BinOp):  # X | None
            return self.hint(annotation.left, module)
        if annotation is None:
            return None
        inner = annotation.slice if isinstance(annotation, ast.Subscript) else None
        found = self.project.resolve(annotation, module)
        name = found.name if found else ""
        if name.rsplit(".", 1)[-1] in {"Optional", "Annotated", "Final", "ClassVar"} and inner is not None:
            return self.hint(inner.elts[0] if isinstance(inner, ast.Tuple) else inner, module)
        element = self.hint(inner, module) if inner is not None and not isinstance(inner, ast.Tuple) else None
        return Hint(name, found if isinstance(found, ClassInfo) else None, element) if found else None


def _is_empty(value: Value | None, heap: dict[str, HeapObject]) -> bool:
    if isinstance(value, Const):
        return not value.value
    thing = heap.get(value.name) if isinstance(value, Ref) else None
    return (isinstance(value, Tup) and not value.items) or (isinstance(thing, Seq) and not thing.segments)


def _flagged(value: Value, key: str) -> Value:
    if isinstance(value, Const):
        return Const(value.value, value.flags | {key})
    if isinstance(value, Ref):
        return Ref(value.name, value.flags | {key})
    if isinstance(value, Tup):
        return Tup(value.items, value.flags | {key})
    if isinstance(value, Opaque):
        return replace(value, flags=value.flags | {key})
    return value


def is_outside(found: ClassInfo | Outside | None) -> bool:
    """Return whether a resolved name lies outside the tree."""
    return isinstance(found, Outside)


def text_of(node: ast.AST) -> str:
    """Return the source of a test without its leading negations."""
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node = node.operand
    return describe(node, limit=120)


Handler = Callable[..., Value]
__all__ = ["NO_FLAGS", "ClassRef", "Machine"]
