"""Findings as SARIF 2.1.0 (OASIS standard), for code review tools.

The structs hold the part of the format that is used here; `rename` gives the standard's names. The object models on
the package index are either unmaintained or bring a second validation library for these few fields.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote

import msgspec

from mragaudit import __version__
from mragaudit.hookaudit.inventory import FileProblem, Inventory
from mragaudit.hookaudit.verdicts import CODES, HookVerdict, Kind

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "mragauditHook/v1"

RULES: dict[str, tuple[str, str, str]] = {
    "MRH101": ("todo-stub", "A hook is a stub or marked TODO", "error"),
    "MRH102": ("returns-input", "A hook returns its input", "error"),
    "MRH103": ("returns-copy", "A hook returns an alias or a copy of its input", "error"),
    "MRH104": ("delegates-to-identity", "A hook delegates to a function that returns its input", "error"),
    "MRH105": ("dead-code", "The code of a hook that would act is never reached", "error"),
    "MRH106": ("result-discarded", "A hook computes a change and does not return it", "error"),
    "MRH107": ("raises-not-implemented", "A hook raises NotImplementedError", "error"),
    "MRH108": ("returns-nothing", "A hook returns nothing and changes nothing", "error"),
    "MRH109": ("constant-answer", "A gate answers the same whatever it is asked", "error"),
    "MRH201": ("conditional", "Whether a hook acts is decided by a setting", "warning"),
    "MRH301": ("unknown", "Whether a hook acts cannot be told from the source", "note"),
    "MRH401": ("fail-open", "An exception handler of an active hook hands on the input", "warning"),
}
RULE_OF_KIND: dict[Kind, str] = {
    "todo_stub": "MRH101",
    "returns_input": "MRH102",
    "returns_copy": "MRH103",
    "delegates_to_identity": "MRH104",
    "dead_code": "MRH105",
    "result_discarded": "MRH106",
    "raises_not_implemented": "MRH107",
    "returns_nothing": "MRH108",
    "constant_answer": "MRH109",
}


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all parts of the format."""


class Message(_Part, frozen=True, kw_only=True):
    """A plain text."""

    text: str


class Configuration(_Part, frozen=True, kw_only=True):
    """A rule's default level."""

    level: str


class Rule(_Part, frozen=True, kw_only=True):
    """One kind of finding."""

    id: str
    name: str
    short_description: Message
    default_configuration: Configuration


class Driver(_Part, frozen=True, kw_only=True):
    """The tool."""

    name: str
    semantic_version: str
    rules: tuple[Rule, ...]


class Tool(_Part, frozen=True, kw_only=True):
    """The tool with its components."""

    driver: Driver


class ArtifactLocation(_Part, frozen=True, kw_only=True):
    """A file."""

    uri: str


class Region(_Part, frozen=True, kw_only=True):
    """A place in a file."""

    start_line: int


class PhysicalLocation(_Part, frozen=True, kw_only=True):
    """A place in a file, with the file."""

    artifact_location: ArtifactLocation
    region: Region | None = None


class LogicalLocation(_Part, frozen=True, kw_only=True):
    """A name in the code."""

    fully_qualified_name: str
    kind: str


class Location(_Part, frozen=True, kw_only=True):
    """Where a finding is."""

    physical_location: PhysicalLocation
    logical_locations: tuple[LogicalLocation, ...] = ()


class Result(_Part, frozen=True, kw_only=True):
    """One finding."""

    rule_id: str
    rule_index: int
    level: str
    message: Message
    locations: tuple[Location, ...]
    partial_fingerprints: dict[str, str]
    baseline_state: str | None = None
    properties: dict[str, str] = {}


class Notification(_Part, frozen=True, kw_only=True):
    """A file that could not be audited."""

    level: str
    message: Message
    locations: tuple[Location, ...]


class Invocation(_Part, frozen=True, kw_only=True):
    """One run of the tool."""

    execution_successful: bool
    tool_execution_notifications: tuple[Notification, ...] = ()


class Run(_Part, frozen=True, kw_only=True):
    """One run and its findings."""

    tool: Tool
    invocations: tuple[Invocation, ...]
    results: tuple[Result, ...]
    column_kind: str


class Log(_Part, frozen=True, kw_only=True):
    """A SARIF file."""

    schema: str = msgspec.field(name="$schema")
    version: str
    runs: tuple[Run, ...]


def render_sarif(inventory: Inventory, *, folder: str, known: Collection[str] | None = None) -> bytes:
    """Return the findings as a SARIF file; `folder` stands before each file's path.

    `known` holds the fingerprints of a baseline: with one, each finding says whether it is new.
    """
    results = tuple(
        _result(verdict, rule_of(verdict), folder=folder, known=known)
        for verdict in inventory.verdicts
        if rule_of(verdict)
    )
    notes = tuple(_notification(problem, folder) for problem in inventory.problems)
    rules = tuple(
        Rule(id=code, name=name, short_description=Message(text=text), default_configuration=Configuration(level=level))
        for code, (name, text, level) in RULES.items()
    )
    run = Run(
        tool=Tool(driver=Driver(name="mragaudit hooks", semantic_version=__version__, rules=rules)),
        invocations=(Invocation(execution_successful=True, tool_execution_notifications=notes),),
        results=results,
        column_kind="unicodeCodePoints",
    )
    log = Log(schema=SCHEMA, version="2.1.0", runs=(run,))
    return msgspec.json.format(msgspec.json.encode(log), indent=2) + b"\n"


def rule_of(verdict: HookVerdict) -> str:
    """Return the id of the rule that a verdict breaks, empty for an active hook without fault."""
    if verdict.status == "inactive":
        return RULE_OF_KIND[verdict.kind or "returns_input"]
    if verdict.status == "conditional":
        return "MRH201"
    if verdict.status == "unknown":
        return "MRH301"
    return "MRH401" if verdict.fail_open else ""


def _result(verdict: HookVerdict, rule: str, *, folder: str, known: Collection[str] | None) -> Result:
    shown = f"{verdict.name} ({CODES[verdict.hook]} {verdict.hook}) is {verdict.status}: {verdict.evidence}"
    return Result(
        rule_id=rule,
        rule_index=list(RULES).index(rule),
        level=RULES[rule][2],
        message=Message(text=shown),
        locations=(_location(verdict.file, verdict.line, folder=folder, name=verdict.name),),
        partial_fingerprints={FINGERPRINT: verdict.fingerprint},
        baseline_state=None if known is None else ("unchanged" if verdict.fingerprint in known else "new"),
        properties={"hook": verdict.hook, "status": verdict.status},
    )


def _notification(problem: FileProblem, folder: str) -> Notification:
    location = _location(problem.file, problem.line, folder=folder, name=None)
    return Notification(level="warning", message=Message(text=problem.reason), locations=(location,))


def _location(file: str, line: int | None, *, folder: str, name: str | None) -> Location:
    path = f"{folder}/{file}" if folder not in {"", "."} else file
    region = Region(start_line=line) if line else None
    names = (LogicalLocation(fully_qualified_name=name, kind="function"),) if name else ()
    place = PhysicalLocation(artifact_location=ArtifactLocation(uri=quote(path)), region=region)
    return Location(physical_location=place, logical_locations=names)
