"""What an expression may hold, as far as it matters: the unchanged input, a part of it, something else, or unknown.

The analysis follows one value, the *subject*: the argument that a hook is there to change. It is taken to be present,
not empty and of the declared type; what a hook does with an empty input protects nobody.
"""

from __future__ import annotations

import ast
import functools
import math
import string
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mragaudit.hookaudit.symbols import ClassInfo, Module

NO_FLAGS: frozenset[str] = frozenset()
MAX_CHOICES = 8


@dataclass(frozen=True, slots=True)
class Hint:
    """What an annotation says of a value: a class of the tree, a dotted name, and the hint of its elements."""

    name: str
    cls: ClassInfo | None = None
    element: Hint | None = None


@dataclass(frozen=True, slots=True)
class Const:
    """A constant; `flags` are the settings whose default it is."""

    value: Any
    flags: frozenset[str] = NO_FLAGS


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that has nothing to do with the subject and is not known more closely."""

    why: str = ""
    flags: frozenset[str] = NO_FLAGS
    truthy: bool | None = None
    kind: str = ""
    """Dotted name of its type, where known (`re.Pattern`)."""
    settled: bool = False
    """Whether it comes from the caller at run time, so that it is no setting."""
    pattern: str | None = None
    """Patterns: their text, where known."""


@dataclass(frozen=True, slots=True)
class Same:
    """The subject, or something equal to it.

    `tops` names the outer objects that it may be, `elements` the owners of what is inside: a list made of the
    subject's own documents has an outer object of its own and shares the inner ones.
    """

    tops: frozenset[str] = frozenset({"subject"})
    elements: frozenset[str] = frozenset({"subject.*"})
    copied: bool = False
    hint: Hint | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Part:
    """An unchanged part of the subject: one of its elements, an attribute, an item, a piece between separators."""

    owner: Same | Part
    step: tuple[str, Any]
    hint: Hint | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Changed:
    """A value that comes from the subject, or takes its place, and is not equal to it."""

    what: str
    line: int = field(default=0, compare=False)
    file: str = field(default="", compare=False)
    truthy: bool | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that may or may not be the subject."""

    reason: str
    line: int = field(default=0, compare=False)
    file: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Tup:
    """A tuple display."""

    items: tuple[Value, ...]
    flags: frozenset[str] = NO_FLAGS


@dataclass(frozen=True, slots=True)
class Ref:
    """A list, dict or instance in the heap."""

    name: str
    flags: frozenset[str] = NO_FLAGS


@dataclass(frozen=True, slots=True, eq=False)
class Func:
    """A function, method or lambda of the tree, with the frame in which it was defined."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: Module
    frame: int | None = None
    cls: ClassInfo | None = None
    defaults: tuple[tuple[str, Value], ...] = ()
    """What the defaults of a nested function were when it was defined."""

    @property
    def name(self) -> str:
        """Name with its class."""
        own = "lambda" if isinstance(self.node, ast.Lambda) else self.node.name
        return f"{self.cls.name}.{own}" if self.cls else own


@dataclass(frozen=True, slots=True)
class Bound:
    """A callable with its first argument."""

    func: Value
    receiver: Value


@dataclass(frozen=True, slots=True)
class Partial:
    """A callable with arguments that are already given; `method` when it still wants its instance first."""

    func: Value
    args: tuple[Value, ...]
    kwargs: tuple[tuple[str, Value], ...]
    method: bool = False


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A static or class method, or a property, around a callable."""

    how: str
    func: Value


@dataclass(frozen=True, slots=True, eq=False)
class ClassRef:
    """A class of the tree."""

    info: ClassInfo


@dataclass(frozen=True, slots=True, eq=False)
class ModuleRef:
    """A module of the tree."""

    module: Module


@dataclass(frozen=True, slots=True)
class External:
    """Something of a package that is not in the tree, by its dotted name; builtins have no dot."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Super:
    """The next classes in the order of an instance."""

    receiver: Value
    after: ClassInfo


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value that the tree does not define."""

    receiver: Value
    name: str


@dataclass(frozen=True, slots=True)
class View:
    """An iteration over `inner`: enumerate, zip (of several), items, keys, values, range(len())."""

    how: str
    inner: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Index:
    """The running position in an iteration over `source`."""

    source: Value


@dataclass(frozen=True, slots=True)
class One:
    """One element of a list, or one piece of a text."""

    value: Value


@dataclass(frozen=True, slots=True)
class Spread:
    """All elements of a value, in their order."""

    value: Value


@dataclass(frozen=True, slots=True)
class Each:
    """One element for each element of `source`, in order; not for all of them where not `exact`."""

    source: Value
    value: Value
    exact: bool = True


Segment: TypeAlias = One | Spread | Each


@dataclass(frozen=True, slots=True)
class Text:
    """A text put together from pieces."""

    pieces: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Growing:
    """The text that a loop adds to, as it stands at the start of a round."""

    name: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values."""

    values: tuple[Value, ...]


Value: TypeAlias = (
    Const
    | Opaque
    | Same
    | Part
    | Changed
    | Unknown
    | Tup
    | Ref
    | Func
    | Bound
    | Partial
    | Wrapped
    | ClassRef
    | ModuleRef
    | External
    | Super
    | Method
    | View
    | Index
    | Text
    | Growing
    | Choice
)


CONSTANTS: dict[str, Any] = {
    "math.inf": math.inf,
    "numpy.inf": math.inf,
    "math.pi": math.pi,
    "math.e": math.e,
    "sys.maxsize": sys.maxsize,
    "sys.version_info": tuple(sys.version_info[:3]),
    **{f"string.{name}": getattr(string, name) for name in ("digits", "ascii_letters", "punctuation", "whitespace")},
}


def outside(name: str) -> Const | External:
    """Return what a dotted name outside the tree stands for: a constant that never differs, or just the name."""
    return Const(CONSTANTS[name]) if name in CONSTANTS else External(name)


def flags_of(value: Value) -> frozenset[str]:
    """Return the settings on which a value rests."""
    if isinstance(value, Const | Opaque | Ref | Tup):
        return value.flags
    if isinstance(value, View):
        return frozenset().union(*map(flags_of, value.inner))
    return frozenset().union(*(flags_of(item) for item in value.values)) if isinstance(value, Choice) else NO_FLAGS


def with_flags(value: Value, flags: frozenset[str]) -> Value:
    """Return the value resting on further settings, where it can say so."""
    if flags and isinstance(value, Const | Opaque | Ref | Tup):
        return replace(value, flags=value.flags | flags)
    return value


def is_subject(value: Value) -> bool:
    """Return whether a value is the subject, a part of it, made from it, or may be."""
    if isinstance(value, Same | Part | Changed | Unknown):
        return True
    if isinstance(value, Tup):
        return any(map(is_subject, value.items))
    if isinstance(value, Choice):
        return any(map(is_subject, value.values))
    if isinstance(value, View):
        return value.how != "length" and any(map(is_subject, value.inner))
    if isinstance(value, Text):
        return any(is_subject(piece.value) for piece in value.pieces)
    return isinstance(value, Index | Growing)


def merge_values(left: Value, right: Value) -> Value:
    """Return what holds of both: a change on either way is a change, else doubt on either way is doubt."""
    if left == right:
        return left
    for kind in (Changed, Unknown):
        for value, other in ((left, right), (right, left)):
            if isinstance(value, kind) and not _is_nothing(other):
                return value
    if isinstance(left, Same) and isinstance(right, Same):
        return Same(left.tops | right.tops, left.elements | right.elements, left.copied or right.copied, left.hint)
    return _choice(left, right)


def _is_nothing(value: Value) -> bool:
    return isinstance(value, Const) and value.value is None


def _choice(left: Value, right: Value) -> Value:
    values: list[Value] = []
    for value in (left, right):
        for item in value.values if isinstance(value, Choice) else (value,):
            if item not in values:
                values.append(item)
    if len(values) > MAX_CHOICES:
        if any(map(is_subject, values)):
            return Unknown("one of many values")
        return Opaque("one of many values", flags=frozenset().union(*map(flags_of, values)))
    return Choice(tuple(values))


@functools.lru_cache(maxsize=16384)
def describe(node: ast.AST, limit: int = 70) -> str:
    """Return the source of an expression in one short line."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (RecursionError, ValueError):
        return "a long expression"
    return text if len(text) <= limit else text[: limit - 3] + "..."
