"""Registries of one module that other modules fill when they are imported."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

from mragaudit.hookaudit.scopes import Definition, Scope, scan_body
from mragaudit.hookaudit.symbols import FILLS, Inside, Module, Project

REGISTERS = FILLS | {"register"}


@functools.lru_cache(maxsize=1)
def filled_elsewhere(project: Project) -> dict[tuple[str, str], str]:
    """Return (module, name) → the module of the tree that puts something into what that name holds."""
    found: dict[tuple[str, str], str] = {}
    for module in project.modules:
        for target, name in _filled_by(project, module):
            if target is not module:
                found.setdefault((target.name, name), module.name)
    return found


def _filled_by(project: Project, module: Module) -> Iterator[tuple[Module, str]]:
    """Yield what a module body fills: an imported name itself, or what an imported function it runs fills."""
    for name, statements in module.scope.effects.items():
        target = _imported(project, module, name)
        if target is None:
            continue
        for attribute in filter(None, map(_touched, statements)):
            if target.name and attribute in REGISTERS:
                yield target.module, target.name
            elif not target.name:
                yield from ((target.module, held) for held in _changed_by(target.module, attribute))
    for name, _ in module.scope.calls:
        target = _imported(project, module, name)
        if target is not None and target.name:
            yield from ((target.module, held) for held in _changed_by(target.module, target.name))


def _imported(project: Project, module: Module, name: str) -> Inside | None:
    """Return what of the tree a name of a module is imported from."""
    for binding in module.scope.bindings.get(name, ()):
        if isinstance(binding.node, ast.Import | ast.ImportFrom):
            target = project.import_target(binding.node, name, module)
            return target if isinstance(target, Inside) else None
    return None


def _touched(statement: ast.stmt) -> str:
    """Return the method that a statement calls on a name, or that it writes one of its items."""
    for part in ast.walk(statement):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            return part.attr
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            return "update"
    return ""


def _changed_by(module: Module, name: str) -> set[str]:
    """Return the names of a module that one of its functions fills."""
    node = next((b.node for b in module.scope.bindings.get(name, ()) if isinstance(b.node, Definition)), None)
    if node is None:
        return set()
    inner: Scope = scan_body([part for part in ast.walk(node) if isinstance(part, ast.stmt) and part is not node])
    return inner.effects.keys() & module.scope.bindings.keys()
