"""How a hook fails to act, and the verdict in one sentence."""

from __future__ import annotations

# ruff: noqa: PLR0911  # one way out for each kind
import ast
import re

from mragaudit.hookaudit.classification import place_of
from mragaudit.hookaudit.exploration import Finding
from mragaudit.hookaudit.interpreter.machine import Setting
from mragaudit.hookaudit.interpreter.values import Const, Same
from mragaudit.hookaudit.runs import Outcome
from mragaudit.hookaudit.scopes import Definition
from mragaudit.hookaudit.symbols import ClassInfo, Module
from mragaudit.hookaudit.verdicts import Kind, Target

MARKER = re.compile(r"#.*\b(todo|fixme|xxx|placeholder|stub|not (yet )?implemented|not yet)\b", re.IGNORECASE)


def kind_of_inaction(base: Outcome, *, node: ast.AST | None, module: Module, inherited: bool) -> Kind:
    """Return how an inactive hook fails to act."""
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


def via_of(base: Outcome, *, target: Target, owner: ClassInfo | None) -> str | None:
    """Return the functions and methods through which the input goes, the first four."""
    names = list(dict.fromkeys(base.notes.via))
    if owner is not None and owner is not target.cls:
        names.insert(0, f"{owner.name}.{target.spec.method}")
    return " → ".join(dict.fromkeys(names[:4])) or None


def sentence_of(base: Outcome, found: Finding, *, target: Target, owner: ClassInfo | None) -> str:
    """Return the evidence in one sentence."""
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
        return f"; what it computes is dropped: {place_of(base.notes.discarded)}"
    if base.status == "inactive" and base.notes.dead_line is not None:
        return f"; line {base.notes.dead_line} is never reached"
    if base.notes.fail_open_line is not None:
        return f"; on an exception it hands on the input (line {base.notes.fail_open_line})"
    return ""


def _show_default(setting: Setting) -> str:
    if isinstance(setting.default, Const):
        return repr(setting.default.value)
    return "empty" if setting.empty else "its default"
