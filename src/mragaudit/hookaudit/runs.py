"""One run of a hook in the interpreter, on the subject and under some settings."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from mragaudit.hookaudit.classification import classify
from mragaudit.hookaudit.interpreter.expressions import defaults_of
from mragaudit.hookaudit.interpreter.machine import Abrupt, CallArgs, GiveUp, Notes, Spot
from mragaudit.hookaudit.interpreter.state import HeapObject, Instance, State
from mragaudit.hookaudit.interpreter.statements import VALIDATION, Interpreter
from mragaudit.hookaudit.interpreter.values import (
    Bound,
    Choice,
    ClassRef,
    Const,
    Func,
    Opaque,
    Partial,
    Ref,
    Same,
    Unknown,
    Value,
    Wrapped,
    flags_of,
    is_subject,
)
from mragaudit.hookaudit.scopes import Definition
from mragaudit.hookaudit.symbols import ClassInfo, Module, Project
from mragaudit.hookaudit.verdicts import Plain, Target


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What one run found."""

    status: Plain
    value: Value
    evidence: str
    notes: Notes
    raises: str = ""
    left: dict[str, Value] = field(default_factory=dict)
    """Settings as the hook leaves them for its next call, where it writes to what decided."""


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
        records=spec.records,
        getters=spec.getters,
        setters=spec.setters,
    )
    spot = Spot(machine.module_frame(target.module), State())
    try:
        value, left = _call_hook(machine, target, node=node, spot=spot)
        status, evidence = classify(value, spot.state, spec=spec, notes=machine.notes)
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
    return Outcome(status=status, value=value, evidence=evidence, notes=machine.notes, left=left)


def live_class(project: Project, module: Module, name: str) -> ClassInfo | None:
    """Return which of several definitions of a class holds once the module is imported; None where that is open."""
    machine = Interpreter(project)
    found = machine.lookup(name, Spot(machine.module_frame(module), State()))
    return found.info if isinstance(found, ClassRef) else None


def _undecided(reason: str, machine: Interpreter) -> Outcome:
    return Outcome(status="unknown", value=Unknown(reason), evidence=reason, notes=machine.notes)


def _call_hook(
    machine: Interpreter, target: Target, *, node: ast.AST | None, spot: Spot
) -> tuple[Value, dict[str, Value]]:
    """Return the hook's answer, and the settings as it leaves them."""
    spec = target.spec
    place = node or ast.Pass()
    made: Ref | None = None
    if target.cls is None:
        func = machine.lookup(spec.method, spot)
    else:
        machine.setting_up += 1
        info = machine.made_class(target.cls, spot)
        machine.setting_up -= 1
        made = ref = machine.default_instance(info, node=info.node, spot=spot)
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
    before = spot.state.heap[made.name] if made else None
    value = machine.call(func, args, node=place, spot=spot)
    return value, _left_behind(machine, before, spot.state.heap.get(made.name) if made else None)


def _left_behind(machine: Interpreter, before: HeapObject | None, after: HeapObject | None) -> dict[str, Value]:
    """Return the settings that the hook wrote to: a switch as it stands then, else anything, as after many calls."""
    if not isinstance(before, Instance) or not isinstance(after, Instance):
        return {}
    left: dict[str, Value] = {}
    for name, value in after.attributes.items():
        old = before.attributes.get(name)
        keys = flags_of(old) if old is not None else frozenset()
        key = next(iter(keys or {f"attr:{after.cls.module.name}.{after.cls.name}.{name}"}))
        setting = machine.notes.settings.get(key)
        if value == old or setting is None or not setting.decided or not isinstance(setting.default, Const):
            continue
        if isinstance(value, Const) and isinstance(value.value, bool | str | None):
            if value.value != setting.default.value:
                left[key] = Const(value.value, frozenset({key}))
        elif isinstance(value, Const | Choice | Opaque) and not is_subject(value):
            left[key] = Opaque(f"what earlier calls leave in `{setting.text}`", frozenset({key}), settled=True)
    return left


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
    required = frozenset(name for name in (*names, *keyword_only) if name not in defaults_of(func.node))
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
