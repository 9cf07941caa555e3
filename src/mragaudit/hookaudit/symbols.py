"""Names of a tree: what each module and class binds, where an import leads, and the order of base classes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from mragaudit.hookaudit.source import SourceFile, SourceTree

Definition = ast.FunctionDef | ast.AsyncFunctionDef
FILLS = frozenset("add append appendleft extend insert setdefault update".split())
READS = frozenset("get keys values items copy".split())
PLAIN_BASES = frozenset(
    "object ABC Protocol Generic NamedTuple TypedDict BaseModel BaseSettings Enum str int float dict list".split()
)


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


@dataclass(eq=False, slots=True)
class ClassInfo:
    """A class of the tree."""

    name: str
    module: Module
    node: ast.ClassDef
    scope: Scope

    def __repr__(self) -> str:
        return f"ClassInfo({self.module.name}.{self.name})"


@dataclass(eq=False)
class Module:
    """A module of the tree with its names."""

    source: SourceFile
    classes: list[ClassInfo] = field(default_factory=list)
    """All classes, nested ones as well."""

    @property
    def name(self) -> str:
        """Dotted name."""
        return self.source.name

    @cached_property
    def scope(self) -> Scope:
        """Names of the module body."""
        return scan_body(self.source.tree.body)

    @cached_property
    def lines(self) -> list[str]:
        """Lines of the source."""
        return self.source.text.splitlines()

    @cached_property
    def written(self) -> frozenset[str]:
        """Names whose items the module's code writes, or whose methods it calls."""
        parts = (part for part in ast.walk(self.source.tree) if isinstance(part, ast.Subscript | ast.Attribute))
        return frozenset(
            part.value.id
            for part in parts
            if isinstance(part.value, ast.Name)
            and (part.attr not in READS if isinstance(part, ast.Attribute) else not isinstance(part.ctx, ast.Load))
        )

    @cached_property
    def filled(self) -> frozenset[str]:
        """Names and attributes into whose container some code of the module puts something."""
        parts = (part for part in ast.walk(self.source.tree) if isinstance(part, ast.Subscript | ast.Attribute))
        return frozenset(
            part.value.attr if isinstance(part.value, ast.Attribute) else part.value.id
            for part in parts
            if isinstance(part.value, ast.Name | ast.Attribute)
            and (part.attr in FILLS if isinstance(part, ast.Attribute) else isinstance(part.ctx, ast.Store))
        )

    def exports(self, name: str) -> bool:
        """Return whether a star import brings a name."""
        listed = self.scope.bindings.get("__all__")
        value = getattr(listed[-1].node, "value", None) if listed else None
        if isinstance(value, ast.List | ast.Tuple):
            return any(isinstance(item, ast.Constant) and item.value == name for item in value.elts)
        return name in self.scope.bindings and not name.startswith("_")

    def __repr__(self) -> str:
        return f"Module({self.name})"


@dataclass(frozen=True, slots=True)
class Outside:
    """A name of a package that is not in the tree."""

    name: str


@dataclass(frozen=True, slots=True)
class Inside:
    """A name bound in a module of the tree; without a name the module itself."""

    module: Module
    name: str = ""


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


def collect_classes(module: Module) -> None:
    """Fill in the classes of a module, at any depth."""
    pending: list[tuple[list[ast.stmt], str]] = [(module.source.tree.body, "")]
    while pending:
        body, prefix = pending.pop()
        for node in body:
            inner = prefix
            if isinstance(node, ast.ClassDef):
                module.classes.append(ClassInfo(prefix + node.name, module, node, scan_body(node.body)))
                inner = f"{prefix}{node.name}."
            elif isinstance(node, Definition):
                inner = f"{prefix}{node.name}.<locals>."
            pending.extend((part, inner) for part in nested_bodies(node))
    module.classes.sort(key=lambda info: info.node.lineno)


class Project:
    """All modules of a tree, with resolution of imports, attributes and base classes."""

    def __init__(self, tree: SourceTree) -> None:
        self.modules = [Module(file) for file in tree.files]
        self._prefix = f"{tree.root.resolve().name}."
        self._by_name: dict[str, Module] = {}
        self._by_suffix: dict[str, list[Module]] = {}
        self._orders: dict[ClassInfo, tuple[ClassInfo | str, ...]] = {}
        self._class_of: dict[ast.ClassDef, ClassInfo] = {}
        for module in self.modules:
            self._by_name.setdefault(module.name, module)
            parts = module.name.split(".")
            for start in range(1, len(parts)):
                self._by_suffix.setdefault(".".join(parts[start:]), []).append(module)
            collect_classes(module)
            self._class_of.update((info.node, info) for info in module.classes)

    def class_of(self, node: ast.ClassDef) -> ClassInfo:
        """Return the class that a definition makes."""
        return self._class_of[node]

    def find_module(self, name: str) -> Module | None:
        """Return a module by its dotted name, counted from the root or, when unambiguous, from inside it."""
        found = self._by_name.get(name)
        candidates = self._by_suffix.get(name, [])
        if found is None and len(candidates) == 1 and "." in name:
            return candidates[0]
        return found or self._by_name.get(f"src.{name}") or self._by_name.get(name.removeprefix(self._prefix))

    def import_target(self, node: ast.Import | ast.ImportFrom, name: str, module: Module) -> Inside | Outside:
        """Return where the name that an import statement binds leads."""
        if isinstance(node, ast.Import):
            alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
            return self.dotted(alias.name if alias.asname else name)
        alias = next(a for a in node.names if (a.asname or a.name) == name)
        base = absolute_name(node, module)
        package = self.find_module(base)
        if package and alias.name in package.scope.bindings:
            return Inside(package, alias.name)
        inner = self.find_module(f"{base}.{alias.name}" if base else alias.name)
        if inner:
            return Inside(inner)
        return Inside(package, alias.name) if package else Outside(f"{base}.{alias.name}")

    def dotted(self, name: str) -> Inside | Outside:
        """Return the module of a dotted name."""
        module = self.find_module(name)
        return Inside(module) if module else Outside(name)

    def star_targets(self, module: Module) -> Iterator[Module | str]:
        """Yield the modules from which a module imports all names: those of the tree, else their names."""
        for binding in reversed(module.scope.bindings.get("*", [])):  # the last one wins
            if isinstance(binding.node, ast.ImportFrom):
                name = absolute_name(binding.node, module)
                yield self.find_module(name) or name

    def starred_over(self, module: Module, name: str, *, after: int) -> Module | None:
        """Return the module whose star import, below a line, takes the place of what a name was bound to before."""
        found = None
        for binding in module.scope.bindings.get("*", []):
            if isinstance(binding.node, ast.ImportFrom) and not binding.guards and binding.node.lineno > after:
                target = self.find_module(absolute_name(binding.node, module))
                found = target if target and target is not module and target.exports(name) else found
        return found

    def resolve(self, expression: ast.expr, module: Module) -> ClassInfo | Outside | None:
        """Return the class that an expression names, without evaluating it; None where that cannot be told."""
        while isinstance(expression, ast.Subscript):
            expression = expression.value
        parts: list[str] = []
        while isinstance(expression, ast.Attribute):
            parts.insert(0, expression.attr)
            expression = expression.value
        return self._follow(module, [expression.id, *parts], seen=set()) if isinstance(expression, ast.Name) else None

    def _follow(self, module: Module, parts: list[str], *, seen: set[tuple[str, str]]) -> ClassInfo | Outside | None:
        head, rest = parts[0], parts[1:]
        if (module.name, head) in seen:
            return None
        seen.add((module.name, head))
        bindings = module.scope.bindings.get(head)
        if not bindings:
            return self._follow_star(module, parts, seen=seen)
        node = bindings[-1].node
        if isinstance(node, ast.ClassDef):
            return self._member(self.class_of(node), rest)
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self._follow_import(self.import_target(node, head, module), rest, seen=seen)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Name) and not rest:
            return self._follow(module, [node.value.id], seen=seen)
        return None

    def _follow_star(
        self, module: Module, parts: list[str], *, seen: set[tuple[str, str]]
    ) -> ClassInfo | Outside | None:
        for target in self.star_targets(module):
            if isinstance(target, str):
                return Outside(".".join([target, *parts]))
            if parts[0] in target.scope.bindings:
                return self._follow(target, parts, seen=seen)
        return Outside(".".join(parts))

    def _follow_import(
        self, target: Inside | Outside, rest: list[str], *, seen: set[tuple[str, str]]
    ) -> ClassInfo | Outside | None:
        if isinstance(target, Outside):
            return Outside(".".join([target.name, *rest]))
        if target.name:
            return self._follow(target.module, [target.name, *rest], seen=seen)
        if not rest:
            return None
        inner = self.find_module(f"{target.module.name}.{rest[0]}")
        if inner and rest[0] not in target.module.scope.bindings:
            return self._follow_import(Inside(inner), rest[1:], seen=seen)
        return self._follow(target.module, rest, seen=seen)

    def _member(self, info: ClassInfo, rest: list[str]) -> ClassInfo | None:
        for name in rest:
            bindings = info.scope.bindings.get(name)
            if not bindings or not isinstance(bindings[-1].node, ast.ClassDef):
                return None
            info = self.class_of(bindings[-1].node)
        return info

    def order(self, info: ClassInfo) -> tuple[ClassInfo | str, ...]:
        """Return the method resolution order; bases outside the tree stand as dotted names, `?` where not even that."""
        if info not in self._orders:
            self._orders[info] = (info,)  # what a class that inherits from itself gets to see
            self._orders[info] = self._linearise(info)
        return self._orders[info]

    def bases(self, info: ClassInfo) -> list[ClassInfo | str]:
        """Return the classes from which a class inherits directly."""
        return [self._base(expression, info.module) for expression in info.node.bases]

    def _linearise(self, info: ClassInfo) -> tuple[ClassInfo | str, ...]:
        bases = self.bases(info)
        rows: list[list[ClassInfo | str]] = [
            list(self.order(base)) if isinstance(base, ClassInfo) else [base] for base in bases
        ]
        merged = _merge_rows([*rows, list(bases)])
        if merged is None:  # Python would refuse this class; left to right is the closest
            merged = list(dict.fromkeys(entry for row in rows for entry in row))
        return (info, *(entry for entry in merged if entry is not info))

    def _base(self, expression: ast.expr, module: Module) -> ClassInfo | str:
        found = self.resolve(expression, module)
        return found.name if isinstance(found, Outside) else found or "?"

    def subclasses(self, info: ClassInfo) -> list[ClassInfo]:
        """Return the classes of the tree that inherit from a class, as they stand in the files."""
        return [other for module in self.modules for other in module.classes if info in self.order(other)[1:]]

    def ancestors(self, info: ClassInfo) -> Iterator[str]:
        """Yield dotted names of the class and all its bases."""
        for entry in self.order(info):
            yield entry if isinstance(entry, str) else f"{entry.module.name}.{entry.name}"


def _merge_rows(rows: list[list[ClassInfo | str]]) -> list[ClassInfo | str] | None:
    merged: list[ClassInfo | str] = []
    rows = [row for row in rows if row]
    while rows:
        tails = [entry for row in rows for entry in row[1:]]
        head = next((row[0] for row in rows if row[0] not in tails), None)
        if head is None:
            return None
        merged.append(head)
        rows = [rest for row in rows if (rest := [entry for entry in row if entry is not head and entry != head])]
    return merged


def absolute_name(node: ast.ImportFrom, module: Module) -> str:
    """Return the dotted name of the module that `from … import` names."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    keep = len(parts) - node.level + (1 if module.source.is_package else 0)
    return ".".join([*parts[: max(keep, 0)], *([node.module] if node.module else [])])
