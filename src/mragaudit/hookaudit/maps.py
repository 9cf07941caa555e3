"""Hook maps: which names of a framework are which hook, as data."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from mragaudit.errors import ConfigError
from mragaudit.hookaudit.judgement import declares
from mragaudit.hookaudit.scopes import Definition
from mragaudit.hookaudit.symbols import ClassInfo, Module, Project
from mragaudit.hookaudit.verdicts import Hook, HookSpec, Target
from mragaudit.plainyaml import read_plain
from mragaudit.resources import resource_folder

ORDER = ("own", "langchain", "llama_index", "haystack", "generic")
"""The maps that ship, the closest first: a method that one of them knows is not guessed at by the next."""


class HookRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Methods of some classes, or functions, that are one hook."""

    hook: Hook
    methods: tuple[str, ...]
    bases: tuple[str, ...] = ()
    """Endings of dotted names, one of which the class or a base of it must have; none: any class."""
    not_bases: tuple[str, ...] = ()
    """Endings of dotted names, none of which it may have."""
    decorators: tuple[str, ...] = ()
    """Endings of names of class decorators, one of which the class must have."""
    inherited: bool = True
    """Whether a class counts that only inherits the method."""
    functions: bool = False
    """Whether functions of a module count as well."""
    subject: tuple[str, ...] = ()
    """Names of the parameter that the hook is there to change, one of which must be there; none: the first one."""
    takes: Literal["text", "items"] = "text"
    """`text` cannot be changed in place; `items` can."""
    passed: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """Calls outside the tree that bring the subject; the subject is then no parameter."""
    calls_through: dict[str, int] = {}
    """Functions that run the function given to them at a position (a thread pool's), by name."""
    output_key: str | None = None
    none_means_unchanged: bool = False
    gate: bool = False


class HookMap(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules for one framework."""

    name: str
    description: str
    rules: tuple[HookRule, ...]
    transparent_decorators: tuple[str, ...] = ()
    """Endings of names of decorators that hand on what the function returns."""
    records: tuple[str, ...] = ()
    """Endings of dotted names of classes whose objects hold what they are made of, and nothing else."""
    getters: dict[str, str] = {}
    """Methods of the framework's records that return a field, by name."""
    setters: dict[str, str] = {}
    """Methods of the framework's records that write a field, by name."""
    empty_bases: tuple[str, ...] = ()
    """Endings of dotted names of base classes whose own methods do nothing, and are nobody's defense: listed only for
    a class that declares the hook all the same."""


def read_map(path: Path) -> HookMap:
    """Return a hook map; raises ConfigError, naming file and key, for anything that does not belong there."""
    try:
        content = read_plain(path)
        return msgspec.convert(content, HookMap, strict=False)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: this hook map is missing") from error
    except (msgspec.ValidationError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}; the maps in resources/hook_audit/maps show what may stand here") from error


def shipped_maps(resources: str = "resources") -> tuple[HookMap, ...]:
    """Return the maps that ship, the closest first."""
    folder = resource_folder(resources) / "hook_audit" / "maps"
    return tuple(read_map(folder / f"{name}.yaml") for name in ORDER)


def find_targets(project: Project, maps: tuple[HookMap, ...]) -> list[Target]:
    """Return the hooks of a tree, each method once: under the first map that knows it."""
    targets: list[Target] = []
    for module in project.modules:
        for info in module.classes:
            targets += _class_targets(project, info, maps)
        targets += _function_targets(module, maps)
    return targets


def _class_targets(project: Project, info: ClassInfo, maps: tuple[HookMap, ...]) -> list[Target]:
    members = _members(project, info)
    ancestors: list[str] | None = None
    taken: set[str] = set()
    targets: list[Target] = []
    for hook_map in maps:
        known: set[str] = set()
        for rule in hook_map.rules:
            held = members if rule.inherited else info.scope.bindings
            names = [name for name in rule.methods if name in held and name not in taken]
            names = [name for name in names if not _is_framework_default(project, info, rule=rule, name=name)]
            names = [name for name in names if not _is_empty(project, info, hook_map=hook_map, rule=rule, name=name)]
            if not names:
                continue
            ancestors = ancestors if ancestors is not None else list(project.ancestors(info))
            if not _fits_class(rule, info, ancestors):
                continue
            for name in names:
                target = _target(rule, hook_map, name, module=info.module, cls=info, node=members[name])
                if target is not None:
                    targets.append(target)
                    known.add(name)
        taken |= known
    return [] if _is_protocol(info) else [t for t in targets if not _is_abstract(members[t.spec.method])]


def _members(project: Project, info: ClassInfo) -> dict[str, ast.AST]:
    """Return what the class and its bases in the tree bind, the nearest first."""
    members: dict[str, ast.AST] = {}
    for entry in project.order(info):
        if isinstance(entry, ClassInfo):
            for name, bindings in entry.scope.bindings.items():
                members.setdefault(name, bindings[-1].node)
    return members


def _is_framework_default(project: Project, info: ClassInfo, *, rule: HookRule, name: str) -> bool:
    """Return whether a method is the empty one of the framework's own base class, which is nobody's defense."""
    for entry in project.order(info):
        if isinstance(entry, ClassInfo) and name in entry.scope.bindings:
            return any(entry.name == base.rsplit(".", 1)[-1] for base in rule.bases)
    return False


def _is_empty(project: Project, info: ClassInfo, *, hook_map: HookMap, rule: HookRule, name: str) -> bool:
    """Return whether a method is that of an empty base, and the class does not say that it acts there."""
    for entry in project.order(info) if hook_map.empty_bases else ():
        if isinstance(entry, ClassInfo) and name in entry.scope.bindings:
            dotted = f"{entry.module.name}.{entry.name}"
            ends = any(dotted == base or dotted.endswith(f".{base}") for base in hook_map.empty_bases)
            return ends and not declares(project, info, rule.hook)
    return False


def _fits_class(rule: HookRule, info: ClassInfo, ancestors: list[str]) -> bool:
    if rule.bases and not any(name == base or name.endswith(f".{base}") for name in ancestors for base in rule.bases):
        return False
    if any(name == base or name.endswith(f".{base}") for name in ancestors for base in rule.not_bases):
        return False
    return not rule.decorators or any(_decorator_name(node).endswith(rule.decorators) for node in _decorators(info))


def _decorators(info: ClassInfo) -> list[ast.expr]:
    return list(info.node.decorator_list)


def _decorator_name(node: ast.AST | None) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(target) if isinstance(target, ast.expr) else ""


def _function_targets(module: Module, maps: tuple[HookMap, ...]) -> list[Target]:
    targets: list[Target] = []
    for hook_map in maps:
        for rule in (rule for rule in hook_map.rules if rule.functions and not rule.bases and not rule.decorators):
            for name in rule.methods:
                bindings = module.scope.bindings.get(name, [])
                node = bindings[-1].node if bindings else None
                if isinstance(node, Definition) and all(t.spec.method != name for t in targets):
                    target = _target(rule, hook_map, name, module=module, cls=None, node=node)
                    targets += [target] if target is not None else []
    return targets


def _target(
    rule: HookRule, hook_map: HookMap, name: str, *, module: Module, cls: ClassInfo | None, node: ast.AST | None
) -> Target | None:
    subject = None
    if rule.subject and isinstance(node, Definition):
        arguments = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        subject = next((parameter for parameter in rule.subject if parameter in arguments), None)
        if subject is None or (rule.output_key and not _gives_back(node, rule.output_key)):
            return None
    spec = HookSpec(
        method=name,
        hook=rule.hook,
        map=hook_map.name,
        subject=subject,
        text=rule.takes == "text",
        passed=frozenset(rule.passed),
        sources=frozenset(rule.sources),
        calls_through=rule.calls_through,
        output_key=rule.output_key,
        none_means_unchanged=rule.none_means_unchanged,
        gate=rule.gate,
        transparent=hook_map.transparent_decorators,
        records=hook_map.records,
        getters=hook_map.getters,
        setters=hook_map.setters,
    )
    return Target(module=module, cls=cls, spec=spec)


def _gives_back(node: Definition, key: str) -> bool:
    """Return whether a method's declared outputs, where it declares any, have a key."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and _decorator_name(decorator).endswith("output_types"):
            return any(keyword.arg in {key, None} for keyword in decorator.keywords)
    return True


def _is_protocol(info: ClassInfo) -> bool:
    bases = [base.value if isinstance(base, ast.Subscript) else base for base in info.node.bases]
    return any(ast.unparse(base).rsplit(".", 1)[-1] == "Protocol" for base in bases)


def _is_abstract(node: ast.AST | None) -> bool:
    """Return whether a method only says that subclasses have to have it."""
    if not isinstance(node, Definition):
        return False
    return any(
        _decorator_name(decorator).rsplit(".", 1)[-1].startswith("abstract") for decorator in node.decorator_list
    )
