"""The hook inventory: every hook of a tree with its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from mragaudit.errors import DataError, did_you_mean
from mragaudit.hookaudit.judgement import judge
from mragaudit.hookaudit.maps import HookMap, find_targets, shipped_maps
from mragaudit.hookaudit.runs import live_class
from mragaudit.hookaudit.source import Problem, SourceFile, SourceTree, load_tree, parse_source
from mragaudit.hookaudit.symbols import ClassInfo, Project
from mragaudit.hookaudit.verdicts import HookSpec, HookVerdict, Status, Target

STATUSES: tuple[Status, ...] = ("active", "inactive", "conditional", "unknown")
SCHEMA_VERSION = 1


class FileProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could not be audited."""

    file: str
    line: int | None
    reason: str


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one audit."""

    schema_version: int = SCHEMA_VERSION
    root: str
    n_files: int
    n_lines: int
    verdicts: tuple[HookVerdict, ...]
    problems: tuple[FileProblem, ...]

    def count(self, status: Status) -> int:
        """Return how many hooks have a status."""
        return sum(verdict.status == status for verdict in self.verdicts)


def audit_path(root: Path, maps: tuple[HookMap, ...] | None = None) -> Inventory:
    """Return the inventory of a file or folder; nothing in it is imported."""
    return audit_tree(load_tree(root), maps)


def audit_tree(tree: SourceTree, maps: tuple[HookMap, ...] | None = None) -> Inventory:
    """Return the inventory of a parsed tree, by file and line."""
    project = Project(tree)
    targets = find_targets(project, maps if maps is not None else shipped_maps())
    verdicts = sorted(judge_all(project, targets), key=lambda v: (v.file, v.line, v.name, v.hook))
    problems = tuple(FileProblem(file=p.file, line=p.line, reason=p.reason) for p in tree.problems)
    return Inventory(
        root=str(tree.root),
        n_files=len(tree.files),
        n_lines=tree.line_count,
        verdicts=tuple(verdicts),
        problems=problems,
    )


def judge_all(project: Project, targets: Iterable[Target]) -> list[HookVerdict]:
    """Return the verdict on each hook."""
    return [judge(project, target) for target in targets]


def audit_source(
    source: str | dict[str, str], *, hooks: list[str], class_name: str | None = None, spec: HookSpec | None = None
) -> list[HookVerdict]:
    """Return the verdicts on named methods of a class, or on functions of the module where no class is given.

    `source` is the text of one module, or texts by module name, the first of which holds the class. `spec` says how
    the hooks are called, where not as a method that takes its subject first. Raises DataError for source that does
    not parse and for an unknown class.
    """
    texts = {"source": source} if isinstance(source, str) else source
    files = [_parsed(text, name) for name, text in texts.items()]
    project = Project(SourceTree(root=Path(), files=tuple(files), problems=()))
    module = project.modules[0]
    if class_name is None:
        return [judge(project, Target(module=module, cls=None, spec=_spec_for(name, spec))) for name in hooks]
    names = {info.name for info in module.classes}
    if class_name not in names:
        raise DataError(f'class "{class_name}" is not in the source; {did_you_mean(class_name, names)}')
    defined = [info for info in module.classes if info.name == class_name]
    live = live_class(project, module, class_name) if len(defined) > 1 else defined[0]
    infos = [live] if live in defined else defined
    return [_judge_any(project, infos, _spec_for(name, spec)) for name in hooks]


def _judge_any(project: Project, infos: list[ClassInfo], spec: HookSpec) -> HookVerdict:
    """Return the verdict on a class of which several definitions may hold: unknown where they differ."""
    verdicts = [judge(project, Target(module=info.module, cls=info, spec=spec)) for info in infos]
    if len({(verdict.status, verdict.default) for verdict in verdicts}) == 1:
        return verdicts[-1]
    lines = ", ".join(str(info.node.lineno) for info in infos)
    evidence = f"is defined more than once (lines {lines}), and the source does not tell which definition holds"
    return msgspec.structs.replace(verdicts[-1], status="unknown", default=None, kind=None, evidence=evidence)


def _parsed(text: str, name: str) -> SourceFile:
    parsed = parse_source(text, file=f"{name.replace('.', '/')}.py", name=name)
    if isinstance(parsed, Problem):
        raise DataError(f"{parsed.file}, line {parsed.line}: {parsed.reason}")
    return parsed


def _spec_for(method: str, spec: HookSpec | None) -> HookSpec:
    if spec is not None:
        return HookSpec(**{name: getattr(spec, name) for name in HookSpec.__slots__} | {"method": method})
    for hook_map in shipped_maps():
        for rule in hook_map.rules:
            if method in rule.methods and not rule.bases and not rule.decorators:
                return HookSpec(method=method, hook=rule.hook, map=hook_map.name, text=rule.takes == "text")
    return HookSpec(method=method, hook="response")
