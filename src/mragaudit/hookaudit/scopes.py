"""What the statements of a module or class body bind and change, under which guards, without entering functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Guard:
    """A block around a binding: a branch of an `if`, the body or a handler of a `try`, or some other block."""

    how: str
    test: ast.expr | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that gives a name its value."""

    node: ast.AST
    guards: tuple[Guard, ...] = ()


@dataclass(slots=True)
class Scope:
    """What the statements of a module or class body bind, and the statements that change what is bound."""

    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    effects: dict[str, list[ast.stmt]] = field(default_factory=dict)
    patches: dict[tuple[str, str], list[Binding]] = field(default_factory=dict)
    """(class name, attribute) → the expressions assigned to it from outside the class body, in order."""
    calls: list[tuple[str, Binding]] = field(default_factory=list)
    """Functions of the body that it runs itself: by a statement, or as a decorator."""
    setters: dict[str, Definition] = field(default_factory=dict)
    """Property → what runs when it is written to."""

    def bind(self, name: str, binding: Binding) -> None:
        """Add a place that binds the name."""
        self.bindings.setdefault(name, []).append(binding)

    def change(self, name: str, node: ast.stmt, guards: tuple[Guard, ...] = ()) -> None:
        """Add a statement that changes what a name holds, unless it stands in an exception handler."""
        if all(guard.how != "except" for guard in guards):
            self.effects.setdefault(name, []).append(_under_guards(node, guards))


def scan_body(body: Iterable[ast.stmt]) -> Scope:
    """Return the names that statements bind, not entering functions."""
    scope = Scope()
    _scan(body, scope, ())
    for name, binding in scope.calls:
        _scan_effects_of_call(name, binding, scope)
    for statements in scope.effects.values():
        statements.sort(key=lambda node: node.lineno)
    return scope


def _under_guards(node: ast.stmt, guards: tuple[Guard, ...]) -> ast.stmt:
    """Return a statement together with the tests under which it is reached."""
    for guard in reversed(guards):
        if guard.test is not None:
            test = guard.test
            if guard.how == "else":
                test = ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
            node = ast.copy_location(ast.If(test, [node], []), node)
    return node


def _scan_effects_of_call(name: str, binding: Binding, scope: Scope) -> None:
    """Note which names of the body, and which attributes of its classes, a function that the body runs changes."""
    held = scope.bindings.get(name, [])
    node = held[-1].node if held else None
    if not isinstance(node, Definition) or not isinstance(binding.node, ast.stmt):
        return
    parameters = {arg.arg for arg in ast.walk(node) if isinstance(arg, ast.arg)}
    declared = {name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names}
    for part in (part for part in ast.walk(node) if isinstance(part, ast.stmt)):
        inner = Scope()
        if not isinstance(part, Definition | ast.ClassDef):
            _scan_statement(part, inner, ())
        for changed in {*inner.effects, *(declared & inner.bindings.keys())} - parameters:
            scope.change(changed, binding.node, binding.guards)
        for place, patches in inner.patches.items():
            if place[0] not in parameters:
                scope.patches.setdefault(place, []).extend(Binding(p.node, binding.guards) for p in patches)


def _scan(body: Iterable[ast.stmt], scope: Scope, guards: tuple[Guard, ...]) -> None:
    for node in body:
        _scan_statement(node, scope, guards)


def _scan_statement(node: ast.stmt, scope: Scope, guards: tuple[Guard, ...]) -> None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            _scan_definition(node, scope, guards)
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                scope.bind(alias.asname or alias.name.split(".")[0], Binding(node, guards))
        case ast.Assign():
            for target in node.targets:
                _scan_target(target, node, scope=scope, guards=guards)
        case ast.AnnAssign(value=None):
            return
        case ast.AnnAssign() | ast.AugAssign():
            _scan_target(node.target, node, scope=scope, guards=guards)
        case ast.Expr(value=ast.Call()):
            _scan_call(node, scope, guards)
        case _:
            _scan_block(node, scope, guards)


def _scan_definition(node: Definition | ast.ClassDef, scope: Scope, guards: tuple[Guard, ...]) -> None:
    accessor = _accessor(node)
    if accessor == "setter" and isinstance(node, Definition):
        scope.setters[node.name] = node
    if accessor:
        return
    scope.bind(node.name, Binding(node, guards))
    for decorator in node.decorator_list:
        head = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(head, ast.Name):
            scope.calls.append((head.id, Binding(_applied(decorator, node), guards)))
        elif isinstance(head, ast.Attribute) and isinstance(head.value, ast.Name):  # `@registry.register("name")`
            scope.change(head.value.id, _applied(decorator, node), guards)


def _applied(decorator: ast.expr, node: Definition | ast.ClassDef) -> ast.stmt:
    """Return what a decorator does, as a statement."""
    call = ast.copy_location(ast.Call(decorator, [ast.copy_location(ast.Name(node.name), node)], []), node)
    return ast.copy_location(ast.Expr(call), node)


def _accessor(node: Definition | ast.ClassDef) -> str:
    """Return whether a function is the setter or deleter of a property of its own name, which stays what is read."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Attribute) and decorator.attr in {"setter", "deleter"}:
            return decorator.attr
    return ""


def _scan_target(target: ast.expr, node: ast.stmt, *, scope: Scope, guards: tuple[Guard, ...]) -> None:
    match target:
        case ast.Name():
            if isinstance(node, ast.AugAssign):
                scope.change(target.id, node, guards)
            else:
                scope.bind(target.id, Binding(node, guards))
        case ast.Tuple() | ast.List():
            for item in target.elts:
                _scan_target(item, node, scope=scope, guards=guards)
        case ast.Subscript(value=ast.Call(func=ast.Name(id="globals")), slice=ast.Constant(value=str(name))):
            if isinstance(node, ast.Assign):
                scope.bind(name, Binding(node.value, guards))
        case ast.Subscript(value=ast.Name(id=name)):
            scope.change(name, node, guards)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if isinstance(node, ast.Assign):
            scope.patches.setdefault((name, attribute), []).append(Binding(node.value, guards))
            scope.change(name, node, guards)
        case _:
            return


def _scan_call(node: ast.Expr, scope: Scope, guards: tuple[Guard, ...]) -> None:
    match node.value:
        case ast.Call(func=ast.Name(id="setattr"), args=[ast.Name(id=name), ast.Constant(value=str(attribute)), value]):
            scope.patches.setdefault((name, attribute), []).append(Binding(value, guards))
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            scope.change(name, node, guards)
        case ast.Call(func=ast.Name(id=name)):
            scope.calls.append((name, Binding(node, guards)))
        case _:
            return


def _scan_block(node: ast.stmt, scope: Scope, guards: tuple[Guard, ...]) -> None:
    match node:
        case ast.If():
            _scan(node.body, scope, (*guards, Guard("if", node.test)))
            _scan(node.orelse, scope, (*guards, Guard("else", node.test)))
        case ast.Try():
            _scan(node.body, scope, (*guards, Guard("try")))
            for handler in node.handlers:
                _scan(handler.body, scope, (*guards, Guard("except")))
            _scan(node.orelse, scope, (*guards, Guard("try")))
            _scan(node.finalbody, scope, guards)
        case ast.With() | ast.AsyncWith():
            _scan(node.body, scope, guards)
        case ast.For() | ast.AsyncFor() | ast.While():
            inner = Scope()
            _scan(node.body, inner, ())
            for name in inner.effects:  # what a loop does to a name, only the whole loop does
                scope.change(name, node, guards)
            inner.effects.clear()
            _scan(node.body, scope, (*guards, Guard("loop")))
        case _:
            return


def nested_bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the statement lists inside a statement."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield body
    for holder in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield holder.body
