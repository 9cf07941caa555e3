"""The verdict on one hook: runs of the interpreter under the defaults and under other settings, put into words."""

from __future__ import annotations

# ruff: noqa: PLR0911, PLR0912, C901  # one way out for each kind of value
import ast
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from mragaudit.hookaudit.interpreter.machine import Abrupt, CallArgs, GiveUp, Notes, Setting, Spot
from mragaudit.hookaudit.interpreter.objects import defaults_of
from mragaudit.hookaudit.interpreter.state import Instance, Seq, State, settle
from mragaudit.hookaudit.interpreter.statements import VALIDATION, Interpreter
from mragaudit.hookaudit.interpreter.values import (
    Bound,
    Changed,
    Choice,
    Const,
    External,
    Func,
    Opaque,
    Part,
    Partial,
    Ref,
    Same,
    Tup,
    Unknown,
    Value,
    Wrapped,
)
from mragaudit.hookaudit.symbols import ClassInfo, Definition, Module, Project

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
OWN_SOURCE = "calls none of what the hook map names as its source: it is a source of its own"
MAX_RUNS = 24
MAX_STEPS_OF_ALL_RUNS = 30_000
MARKER = re.compile(r"#.*\b(todo|fixme|xxx|placeholder|stub|not (yet )?implemented|not yet)\b", re.IGNORECASE)


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
    transparent: tuple[str, ...] = ()
    """Endings of names of decorators that hand on what the function returns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What one run found."""

    status: Plain
    value: Value
    evidence: str
    notes: Notes
    raises: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A hook in the tree: a method of a class, or a function of a module."""

    module: Module
    cls: ClassInfo | None
    spec: HookSpec


def judge(project: Project, target: Target) -> HookVerdict:
    """Return the verdict on a hook."""
    spec = target.spec
    node, owner = definition_of(project, target)

    def run(assume: dict[str, Value]) -> Outcome:
        return run_hook(project, target, node=node, assume=assume)

    base = run({})
    found = _explore(base, run)
    place = node or (target.cls.node if target.cls else None)
    module = owner.module if owner else target.module
    return HookVerdict(
        file=module.source.file,
        line=getattr(place, "lineno", 1),
        class_name=target.cls.name if target.cls else None,
        method=spec.method,
        hook=spec.hook,
        map=spec.map,
        status=found.status,
        evidence=_sentence(base, found, target=target, owner=owner),
        default=found.default,
        condition=found.condition,
        kind=_kind(base, node=node, module=module, inherited=owner is not target.cls) if found.says_inactive else None,
        via=_via(base, target=target, owner=owner),
        fail_open=base.notes.fail_open_line is not None or found.fail_open,
        declared=_declared(project, target),
        module_file=target.module.source.file,
        subject=spec.subject,
        output_key=spec.output_key,
    )


# where the hook is
def definition_of(project: Project, target: Target) -> tuple[ast.AST | None, ClassInfo | None]:
    """Return the statement that binds the hook's name, and the class in whose body it stands."""
    name = target.spec.method
    if target.cls is None:
        bindings = target.module.scope.bindings.get(name)
        return (bindings[-1].node if bindings else None), None
    for entry in project.order(target.cls):
        if isinstance(entry, ClassInfo) and (bindings := entry.scope.bindings.get(name)):
            return bindings[-1].node, entry
    return None, target.cls


def _declared(project: Project, target: Target) -> bool | None:
    """Return whether the class, or the nearest base that says so, declares the hook as active."""
    for entry in project.order(target.cls) if target.cls else ():
        bindings = entry.scope.bindings.get("declared_hooks") if isinstance(entry, ClassInfo) else None
        value = getattr(bindings[-1].node, "value", None) if bindings else None
        if isinstance(value, ast.Tuple | ast.List | ast.Set):
            return target.spec.hook in {item.value for item in value.elts if isinstance(item, ast.Constant)}
    return None


# one run
def run_hook(project: Project, target: Target, *, node: ast.AST | None, assume: dict[str, Value]) -> Outcome:
    """Run the hook once on the subject under some settings."""
    spec = target.spec
    machine = Interpreter(
        project,
        assume=assume,
        text_subject=spec.text,
        sources=spec.sources,
        transparent=spec.transparent,
        calls_through=spec.calls_through,
    )
    spot = Spot(machine.module_frame(target.module), State())
    try:
        value = _call_hook(machine, target, node=node, spot=spot)
        status, evidence = _classify(value, spot.state, spec=spec, notes=machine.notes)
    except Abrupt:
        return _never_returns(machine)
    except GiveUp as reason:
        return _undecided(str(reason), machine)
    except RecursionError:
        return _undecided("is nested too deeply to be followed", machine)
    except Exception as error:  # a hook that trips the analysis must not hide the others
        return _undecided(f"the analysis failed here ({type(error).__name__}); please report it", machine)
    refusal = _refusal(machine)
    if refusal and status != "active":
        return Outcome(status="active", value=value, evidence=refusal, notes=machine.notes)
    return Outcome(status=status, value=value, evidence=evidence, notes=machine.notes)


def _undecided(reason: str, machine: Interpreter) -> Outcome:
    return Outcome(status="unknown", value=Unknown(reason), evidence=reason, notes=machine.notes)


def _call_hook(machine: Interpreter, target: Target, *, node: ast.AST | None, spot: Spot) -> Value:
    spec = target.spec
    place = node or ast.Pass()
    if target.cls is None:
        func = machine.lookup(spec.method, spot)
    else:
        ref = machine.default_instance(target.cls, node=target.cls.node, spot=spot)
        thing = spot.state.heap[ref.name]
        if not isinstance(thing, Instance):
            raise GiveUp("its class makes no ordinary object")
        getter = ast.Attribute(ast.Name("self"), spec.method)
        func = machine.instance_attribute(ref, thing, name=spec.method, node=getter, spot=spot)
    if spot.state.touched:
        spot.state.touched.clear()
    signature = _signature(func, node, target)
    args = _arguments(machine, signature, target=target, spot=spot)
    machine.begin_hook(node)
    return machine.call(func, args, node=place, spot=spot)


def _signature(func: Value, node: ast.AST | None, target: Target) -> tuple[Func | None, int]:
    """Return the function whose parameters the pipeline sees, and how many of them are already given."""
    skip = 0
    while not isinstance(func, Func):
        if isinstance(func, Bound):
            skip, func = skip + 1, func.func
        elif isinstance(func, Partial):
            skip, func = skip + len(func.args), func.func
        elif isinstance(func, Wrapped):
            func = func.func
        elif isinstance(func, Choice):
            func = next((item for item in func.values if isinstance(item, Func | Bound | Partial)), Opaque())
        else:
            return None, 0
    takes_all = func.node.args.vararg is not None and isinstance(node, Definition) and func.node is not node
    if takes_all and isinstance(node, Definition):
        static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
        return Func(node, target.module, None, func.cls), 0 if static or target.cls is None else 1
    return func, skip


def _arguments(machine: Interpreter, signature: tuple[Func | None, int], *, target: Target, spot: Spot) -> CallArgs:
    spec = target.spec
    func, skip = signature
    subject = Same()
    if func is None:
        return CallArgs((subject,))
    arguments = func.node.args
    names = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args)][skip:]
    keyword_only = [arg.arg for arg in arguments.kwonlyargs]
    if spec.sources and not (spec.subject and spec.subject in names):
        chosen = None
    else:
        chosen = spec.subject if spec.subject in (*names, *keyword_only) else next(iter([*names, *keyword_only]), None)
    required = frozenset(name for name in (*names, *keyword_only) if name not in defaults_of(func))
    passed = required | spec.passed
    values = machine.default_arguments(func, prefix=f"param:{spec.method}", spot=spot, skip=skip, passed=passed)
    if chosen is not None:
        annotation = next(
            arg.annotation
            for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            if arg.arg == chosen
        )
        values[chosen] = machine.hinted(subject, machine.hint(annotation, func.module))
    given = _leading(names, values)
    rest = {name: value for name, value in values.items() if name not in names[: len(given)]}
    if chosen is None and not spec.sources:
        given = (subject, *given)
    return CallArgs(given, rest)


def _leading(names: list[str], values: dict[str, Value]) -> tuple[Value, ...]:
    return tuple(values[name] for name in names)


def _classify(value: Value, state: State, *, spec: HookSpec, notes: Notes) -> tuple[Plain, str]:
    """Return whether the answer is something else than the input, with the evidence."""
    if spec.sources and not notes.brought:
        return "unknown", OWN_SOURCE
    if spec.output_key is not None:
        value = _under_key(value, spec.output_key, state)
        if settle(value, state) == Part(Same(), ("item", spec.output_key)):
            return "inactive", f"hands back `{spec.output_key}` of its input as it was"
    if spec.gate:
        return _classify_gate(value, state)
    settled = settle(value, state)
    touched = settle(Same(), state)
    match settled:
        case Const(value=None):
            if isinstance(touched, Changed):
                return "active", _place(touched)
            if isinstance(touched, Unknown):
                return "unknown", _place(touched)
            return "inactive", "returns nothing and changes nothing in place"
        case Same():
            return "inactive", "returns a copy of its input" if settled.copied else "returns its input"
        case Changed():
            return "active", _place(settled)
        case Unknown():
            return "unknown", _place(settled)
        case Choice():
            return _classify_choice(settled, state, spec=spec)
        case Part():
            return "active", "returns only a part of the input"
        case Opaque() if notes.risks and not settled.settled:
            return "unknown", f"returns what comes from outside the tree, after handing the input there ({settled.why})"
        case _:
            return "active", "returns something else than its input"


def _classify_choice(choice: Choice, state: State, *, spec: HookSpec) -> tuple[Plain, str]:
    items = [settle(item, state) for item in choice.values]
    if spec.none_means_unchanged:
        items = [item for item in items if not (isinstance(item, Const) and item.value is None)]
    changed = next((item for item in items if isinstance(item, Changed)), None)
    if changed is not None:
        return "active", _place(changed)
    doubt = next((item for item in items if isinstance(item, Unknown)), None)
    if doubt is not None:
        return "unknown", _place(doubt)
    if all(isinstance(item, Same) for item in items):
        return "inactive", "returns its input"
    return "active", "returns something else than its input on some inputs"


def _classify_gate(value: Value, state: State) -> tuple[Plain, str]:
    settled = settle(value, state)
    if isinstance(settled, Const):
        return "inactive", f"always answers {settled.value!r}, whatever the input"
    if isinstance(settled, Unknown):
        return "unknown", _place(settled)
    return ("inactive", "returns its input") if isinstance(settled, Same) else ("active", "answers by the input")


def _under_key(value: Value, key: str, state: State) -> Value:
    """Return what stands in a returned dict under a key."""
    if isinstance(value, Choice):
        parts = [_under_key(item, key, state) for item in value.values]
        return parts[0] if all(part == parts[0] for part in parts) else Choice(tuple(parts))
    thing = state.heap.get(value.name) if isinstance(value, Ref) else None
    if isinstance(thing, Seq) and thing.kind == "dict":
        for segment in reversed(thing.segments):
            pair = segment.value
            if isinstance(pair, Tup) and isinstance(pair.items[0], Const) and pair.items[0].value == key:
                return pair.items[1]
        return Const(None)
    return value


def _place(found: Changed | Unknown) -> str:
    text = found.what if isinstance(found, Changed) else found.reason
    return f"{text} ({found.file}:{found.line})" if found.line else text


def _refusal(machine: Interpreter) -> str:
    """Return how the hook refuses some inputs by raising, where it looks at them first."""
    for raised in machine.sinks[0]:
        if raised.state.guarded and not raised.state.exceptional and raised.name not in VALIDATION:
            return f"refuses some inputs by raising {raised.name} ({raised.file}:{raised.line})"
    return ""


def _never_returns(machine: Interpreter) -> Outcome:
    names = {raised.name for raised in machine.sinks[0]}
    if names == {"NotImplementedError"}:
        value = Const(None)
        return Outcome(
            status="inactive", value=value, evidence="raises NotImplementedError", notes=machine.notes, raises="always"
        )
    why = f"always raises {', '.join(sorted(names))}" if names else "never returns"
    refusal = _refusal(machine)
    if refusal:
        return Outcome(status="active", value=Const(None), evidence=refusal, notes=machine.notes)
    return _undecided(why, machine)


# other settings
@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The status over all settings that were tried."""

    status: Status
    default: Plain | None = None
    condition: str | None = None
    other: Outcome | None = None
    setting: Setting | None = None

    @property
    def says_inactive(self) -> bool:
        """Whether the hook is inactive, at least by default."""
        return self.status == "inactive" or self.default == "inactive"

    @property
    def fail_open(self) -> bool:
        """Whether the other setting leads to a fail-open handler."""
        return self.other is not None and self.other.notes.fail_open_line is not None


def _explore(base: Outcome, run: Callable[[dict[str, Value]], Outcome]) -> Finding:
    """Try other values of the settings that decided; a second one where the first leads to it."""
    runs = 0
    pending: list[tuple[dict[str, Value], Outcome]] = [({}, base)]
    steps = base.notes.steps
    if base.evidence == OWN_SOURCE:
        return Finding(status=base.status)
    while pending:
        assumed, outcome = pending.pop(0)
        for key, setting in sorted(outcome.notes.settings.items(), key=lambda item: _urgency(item[1])):
            if runs >= MAX_RUNS or steps > MAX_STEPS_OF_ALL_RUNS:
                return Finding(status=base.status)
            if not setting.decided or key in assumed or key in pending_keys(pending, assumed):
                continue
            results = []
            for other in alternatives(setting, base.status, used=key in outcome.notes.used):
                runs += 1
                results.append(run({**assumed, key: other}))
                steps += results[-1].notes.steps
                finding = _compare(base, results, setting=setting, key=key)
                if finding is not None:
                    return finding
            if len(assumed) < 2 and results:  # noqa: PLR2004  # three settings deep
                first = alternatives(setting, base.status, used=key in outcome.notes.used)[0]
                pending.append(({**assumed, key: first}, results[0]))
    return Finding(status=base.status)


def _urgency(setting: Setting) -> tuple[bool, int]:
    """Return the order in which settings are tried: those that the hook itself reads first, plain switches first."""
    if isinstance(setting.default, Const) and isinstance(setting.default.value, bool):
        return setting.early, 0
    return setting.early, 1 if setting.empty else 2


def pending_keys(pending: list[tuple[dict[str, Value], Outcome]], assumed: dict[str, Value]) -> set[str]:
    """Return the settings that stand to be combined with the assumed ones anyway."""
    return {key for other, _ in pending for key in other if len(other) == len(assumed) + 1 and assumed}


def alternatives(setting: Setting, status: Plain, *, used: bool) -> list[Value]:
    """Return the other values worth trying: a switch the other way, something where there is nothing.

    A value that is there (a pattern, a list of entities) is not taken away from a hook that acts by it.
    """
    flags = frozenset({setting.key})
    default = setting.default
    if default is None:
        if used:
            return []
        return [Const(True, flags), Const(False, flags)]
    if isinstance(default, Const) and isinstance(default.value, bool):
        return [Const(not default.value, flags)]
    filled = isinstance(default, Const) and bool(default.value)
    if not filled and setting.empty:
        return [Opaque(f"another value of `{setting.text}`", flags, truthy=True, settled=True)]
    if setting.compared and isinstance(default, Const) and isinstance(default.value, str) and status == "active":
        return [Const("\0another value", flags)]
    if status == "inactive":
        return [Opaque(f"another value of `{setting.text}`", flags, settled=True)]
    return []


def _compare(base: Outcome, results: list[Outcome], *, setting: Setting, key: str) -> Finding | None:
    """Return the conditional verdict where another value of a setting leads to another status."""
    condition = setting.condition
    if setting.default is None:
        statuses = {result.status for result in (base, *results)}
        if len(results) < 2 or len(statuses) == 1:  # noqa: PLR2004  # both ways of a switch
            return None
        acting = next((result for result in (*results, base) if result.status != "inactive"), base)
        return Finding(status="conditional", default="unknown", condition=condition, other=acting, setting=setting)
    other = results[-1]
    relevant = {(one, two) for one in ("active", "inactive", "unknown") for two in ("active", "inactive", "unknown")}
    relevant -= {("active", "active"), ("inactive", "inactive"), ("unknown", "unknown"), ("active", "unknown")}
    if not setting.is_switch:
        relevant = {("inactive", "active"), ("active", "inactive")}
    if (base.status, other.status) not in relevant:
        return None
    default: Plain = "unknown" if key.startswith("import:") else base.status
    return Finding(status="conditional", default=default, condition=condition, other=other, setting=setting)


# words
def _kind(base: Outcome, *, node: ast.AST | None, module: Module, inherited: bool) -> Kind:
    if base.raises:
        return "raises_not_implemented"
    if base.evidence.startswith("always answers"):
        return "constant_answer"
    if node is not None and (_is_empty(node) or _is_marked(node, module)):
        return "todo_stub"
    if base.notes.dead_line is not None:
        return "dead_code"
    if base.notes.discarded is not None:
        return "result_discarded"
    if isinstance(base.value, Const):
        return "returns_nothing"
    if inherited or base.notes.via:
        return "delegates_to_identity"
    plain = isinstance(base.value, Same) and not base.value.copied and _returns_parameter(node)
    return "returns_input" if plain else "returns_copy"


def _returns_parameter(node: ast.AST | None) -> bool:
    """Return whether every return names a parameter as it is."""
    if not isinstance(node, Definition):
        return True
    names = {arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    returns = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return)]
    return all(isinstance(value, ast.Name) and value.id in names for value in returns if value is not None)


def _is_empty(node: ast.AST) -> bool:
    if not isinstance(node, Definition):
        return False
    return all(
        isinstance(part, ast.Pass) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        for part in node.body
    )


def _is_marked(node: ast.AST, module: Module) -> bool:
    if not isinstance(node, Definition):
        return False
    lines = module.lines[node.lineno - 1 : node.end_lineno]
    return any(MARKER.search(line) for line in lines)


def _via(base: Outcome, *, target: Target, owner: ClassInfo | None) -> str | None:
    names = list(dict.fromkeys(base.notes.via))
    if owner is not None and owner is not target.cls:
        names.insert(0, f"{owner.name}.{target.spec.method}")
    return " → ".join(dict.fromkeys(names[:4])) or None


def _sentence(base: Outcome, found: Finding, *, target: Target, owner: ClassInfo | None) -> str:
    inherited = f"inherited from {owner.name}: " if owner is not None and owner is not target.cls else ""
    if found.status != "conditional" or found.other is None or found.setting is None:
        return inherited + base.evidence + _aside(base)
    if found.default == "unknown" and found.setting.default is None:
        return f"{inherited}`{found.condition}` decides, with no default in the tree; one way: {found.other.evidence}"
    shown = _show_default(found.setting)
    return (
        f"{inherited}`{found.condition}` decides; by default ({found.setting.text} = {shown}): {base.evidence}; "
        f"otherwise: {found.other.evidence}"
    )


def _aside(base: Outcome) -> str:
    if base.status == "inactive" and base.notes.discarded is not None:
        return f"; what it computes is dropped: {_place(base.notes.discarded)}"
    if base.status == "inactive" and base.notes.dead_line is not None:
        return f"; line {base.notes.dead_line} is never reached"
    if base.notes.fail_open_line is not None:
        return f"; on an exception it hands on the input (line {base.notes.fail_open_line})"
    return ""


def _show_default(setting: Setting) -> str:
    if isinstance(setting.default, Const):
        return repr(setting.default.value)
    return "empty" if setting.empty else "its default"


__all__ = ["CODES", "HOOKS", "External", "HookSpec", "HookVerdict", "Target", "judge"]
