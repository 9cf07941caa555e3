"""The verdict on one hook, and how a hook is found and called."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from mragaudit.hookaudit.symbols import ClassInfo, Module

Hook = Literal["query", "scores", "documents", "generation", "response"]
Status = Literal["active", "inactive", "conditional", "unknown"]
Plain = Literal["active", "inactive", "unknown"]
Kind = Literal[
    "todo_stub",
    "returns_input",
    "returns_copy",
    "delegates_to_identity",
    "dead_code",
    "result_discarded",
    "raises_not_implemented",
    "returns_nothing",
    "constant_answer",
]
HOOKS: tuple[Hook, ...] = ("query", "scores", "documents", "generation", "response")
CODES: dict[Hook, str] = {"query": "H0", "scores": "H1", "documents": "H2", "generation": "H3", "response": "H4"}


class HookVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the source says of one hook."""

    file: str
    line: int
    class_name: str | None
    """None for a function of a module."""
    method: str
    hook: Hook
    map: str
    """Name of the hook map that says what this name is."""
    status: Status
    evidence: str
    """One sentence, with its place where that is not the hook itself."""
    default: Plain | None = None
    """Conditional hooks: what they are under the defaults; unknown where the tree holds no default."""
    condition: str | None = None
    """Conditional hooks: the test that decides, as the hook writes it."""
    kind: Kind | None = None
    """Inactive hooks, and conditional ones that are inactive by default: how they fail to act."""
    via: str | None = None
    """Functions and methods of the tree through which the input goes, the first four."""
    fail_open: bool = False
    """Whether an exception handler hands on the input where the ordinary path changes it."""
    declared: bool | None = None
    """Whether the class's `declared_hooks` names this hook; None where the class has none."""
    module_file: str = ""
    """File of the class itself, where the hook may be inherited from another file."""
    subject: str | None = None
    output_key: str | None = None

    @property
    def name(self) -> str:
        """Class and method."""
        return f"{self.class_name}.{self.method}" if self.class_name else self.method

    @property
    def fingerprint(self) -> str:
        """Identity of the finding, unchanged when lines move."""
        parts = (self.file, self.name, self.hook, self.status, self.kind or "", self.condition or "")
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, kw_only=True, slots=True)
class HookSpec:
    """How a pipeline calls a hook, and where its answer is."""

    method: str
    hook: Hook
    map: str = "own"
    subject: str | None = None
    """Parameter that the hook is there to change; None: the first."""
    text: bool = True
    """Whether the subject is a text, which nothing can change in place."""
    passed: frozenset[str] = frozenset()
    """Further parameters that the pipeline gives, whatever their default."""
    sources: frozenset[str] = frozenset()
    """Calls that bring the subject, where it is not a parameter."""
    calls_through: Mapping[str, int] = field(default_factory=dict)
    """Functions that run the function given to them at a position, by name."""
    output_key: str | None = None
    """Key of the returned dict under which the answer is."""
    none_means_unchanged: bool = False
    gate: bool = False
    """Whether the answer is a verdict (let through or not) and not the changed subject."""
    records: tuple[str, ...] = ()
    """Endings of names of classes whose objects hold what they are made of."""
    getters: Mapping[str, str] = field(default_factory=dict)
    setters: Mapping[str, str] = field(default_factory=dict)
    """Methods of records that return or write a field, by name."""
    transparent: tuple[str, ...] = ()
    """Endings of names of decorators that hand on what the function returns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A hook in the tree: a method of a class, or a function of a module."""

    module: Module
    cls: ClassInfo | None
    spec: HookSpec
