"""Names of a tree: what each module and class binds, where an import leads, and the order of base classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from mragaudit.hookaudit.scopes import Definition, Scope, nested_bodies, scan_body
from mragaudit.hookaudit.source import SourceFile, SourceTree

FILLS = frozenset("add append appendleft extend insert setdefault update".split())
READS = frozenset("get keys values items copy".split())
PLAIN_BASES = frozenset(
    "object ABC Protocol Generic NamedTuple TypedDict BaseModel BaseSettings Enum str int float dict list".split()
)


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
