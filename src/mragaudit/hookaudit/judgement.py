"""The verdict on a hook, from its runs under the defaults and under other settings."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from mragaudit.hookaudit.exploration import explore
from mragaudit.hookaudit.interpreter.values import Value
from mragaudit.hookaudit.runs import Outcome, run_hook
from mragaudit.hookaudit.symbols import ClassInfo, Project
from mragaudit.hookaudit.verdicts import Hook, HookVerdict, Target
from mragaudit.hookaudit.wording import kind_of_inaction, sentence_of, via_of


def judge(project: Project, target: Target) -> HookVerdict:
    """Return the verdict on a hook."""
    spec = target.spec
    node, owner = definition_of(project, target)

    def run(assume: dict[str, Value]) -> Outcome:
        return run_hook(project, target, node=node, assume=assume)

    base, left = later_call(run({}), run)
    found = explore(base, run, left)
    place = node or (target.cls.node if target.cls else None)
    module = owner.module if owner else target.module
    kind = kind_of_inaction(base, node=node, module=module, inherited=owner is not target.cls)
    return HookVerdict(
        file=module.source.file,
        line=getattr(place, "lineno", 1),
        class_name=target.cls.name if target.cls else None,
        method=spec.method,
        hook=spec.hook,
        map=spec.map,
        status=found.status,
        evidence=sentence_of(base, found, target=target, owner=owner),
        default=found.default,
        condition=found.condition,
        kind=kind if found.says_inactive else None,
        via=via_of(base, target=target, owner=owner),
        fail_open=base.notes.fail_open_line is not None or found.fail_open,
        declared=declares(project, target.cls, spec.hook),
        module_file=target.module.source.file,
        subject=spec.subject,
        output_key=spec.output_key,
    )


def later_call(first: Outcome, run: Callable[[dict[str, Value]], Outcome]) -> tuple[Outcome, dict[str, Value]]:
    """Return the outcome of a later call, and the settings as it finds them, where only that acts."""
    if first.status == "inactive" and first.left:
        later = run(first.left)
        if later.status != "inactive":
            return replace(later, evidence=f"in a later call: {later.evidence}"), first.left
    return first, {}


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


def declares(project: Project, info: ClassInfo | None, hook: Hook) -> bool | None:
    """Return whether a class, or the nearest base that says so, declares the hook as active; None: nobody says."""
    for entry in project.order(info) if info else ():
        bindings = entry.scope.bindings.get("declared_hooks") if isinstance(entry, ClassInfo) else None
        value = getattr(bindings[-1].node, "value", None) if bindings else None
        if isinstance(value, ast.Tuple | ast.List | ast.Set):
            return hook in {item.value for item in value.elts if isinstance(item, ast.Constant)}
    return None
