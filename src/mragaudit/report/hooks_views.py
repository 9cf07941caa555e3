"""The hook audit as its page prints it: hooks and interpretability matrix.

Every view is made from records of `mragaudit.hookaudit` alone and printed by one macro of `hooks_macros.html.j2`, so
that other pages can take the parts that they need.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from urllib.parse import quote

import msgspec

from mragaudit.errors import DataError
from mragaudit.hookaudit.inventory import STATUSES, FileProblem, Inventory
from mragaudit.hookaudit.matrix import ActiveHooks, build_matrix, named_hooks
from mragaudit.hookaudit.matrix import Cell as MatrixCell
from mragaudit.hookaudit.metrics import MetricMap, Sight
from mragaudit.hookaudit.predictions import (
    open_hooks,
)
from mragaudit.hookaudit.probe.records import Observation, disagreement
from mragaudit.hookaudit.verdicts import CODES, Hook, HookVerdict
from mragaudit.report import words
from mragaudit.report.tables import Cell, TableView

SIGHT_WORDS: dict[Sight, str] = {
    "interpretable": "interpretable",
    "indirect": "indirect",
    "nuisance": "nuisance only",
    "not_observable": "not observable",
}
DECLARED = {True: "active", False: "inactive", None: words.MISSING}


class SourceLinks(msgspec.Struct, frozen=True, kw_only=True):
    """Where a reader finds the audited source."""

    url: str
    """Address with `{file}` and `{line}`, such as https://host/blob/main/{file}#L{line}."""
    folder: str = ""
    """What stands before the inventory's paths in `{file}`."""

    def __post_init__(self) -> None:
        if not self.url.startswith(("https://", "http://")) or "{file}" not in self.url:
            raise DataError(
                f'"{self.url}" does not lead to a source file; it has to be an http(s) address with {{file}} in it, '
                "and {line} where the server knows lines"
            )

    def to(self, file: str, line: int) -> str:
        """Return the address of a line."""
        path = f"{self.folder}/{file}" if self.folder not in {"", "."} else file
        return self.url.replace("{file}", quote(path)).replace("{line}", str(line))


class HookRow(msgspec.Struct, frozen=True, kw_only=True):
    """One hook: what is declared, what the source says, what the probe saw."""

    hook: str
    map: str
    name: tuple[str, ...]
    """Class and method in pieces, between which a narrow column may break them."""
    place: str
    """File and line."""
    href: str | None
    declared: str
    status: str
    details: tuple[str, ...]
    """Kind, default and fail-open, where they apply."""
    observed: str | None
    """None where nothing was probed."""
    clash: str
    """How declaration, source and observation contradict one another; empty where they do not."""
    evidence: tuple[tuple[str, bool], ...]
    """Pieces of the sentence, and whether each is code."""


class HooksView(msgspec.Struct, frozen=True, kw_only=True):
    """The hook table."""

    caption: str
    rows: tuple[HookRow, ...]
    probed: bool
    problems: tuple[str, ...]
    """Files that were not audited, with the reason."""


class SightCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of the heat map."""

    sight: Sight
    word: str
    codes: str
    """Codes of the hooks by which the sight holds."""
    open_codes: str
    """Codes of the hooks of which the source does not tell and that would make another sight of it."""


class MatrixRow(msgspec.Struct, frozen=True, kw_only=True):
    """One defense in the heat map."""

    defense: str
    where: str
    cells: tuple[SightCell, ...]


class MetricHead(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the heat map."""

    parts: tuple[str, ...]
    """The name in pieces, between which a narrow column may break it."""
    title: str


class MatrixView(msgspec.Struct, frozen=True, kw_only=True):
    """The interpretability matrix, why it says what it says, and every cell in words."""

    metrics: tuple[MetricHead, ...]
    rows: tuple[MatrixRow, ...]
    reasons: TableView
    cells: TableView


def hooks_view(
    inventory: Inventory,
    *,
    observations: Sequence[Observation] | None = None,
    links: SourceLinks | None = None,
) -> HooksView:
    """Return the hooks by file and line; `observations` are what a probe saw, `links` make places into links."""
    found = {(one.file, one.name, one.hook): one for one in observations or ()}
    rows = tuple(
        _hook_row(
            verdict,
            seen=found.get((verdict.file, verdict.name, verdict.hook)),
            probed=observations is not None,
            href=links.to(verdict.file, verdict.line) if links else None,
        )
        for verdict in inventory.verdicts
    )
    counts = ", ".join(f"{inventory.count(status)} {status}" for status in STATUSES)
    caption = f"{len(rows)} hooks in {inventory.n_files} files ({words.as_count(inventory.n_lines)} lines): {counts}"
    problems = tuple(_problem(problem) for problem in inventory.problems)
    return HooksView(caption=caption, rows=rows, probed=observations is not None, problems=problems)


def _hook_row(verdict: HookVerdict, *, seen: Observation | None, probed: bool, href: str | None) -> HookRow:
    clashes = [
        _declaration_clash(verdict),
        disagreement(verdict, seen) if seen is not None else "",
    ]
    observed = (seen.words if seen is not None else "not probed") if probed else None
    return HookRow(
        hook=named_hooks([verdict.hook]),
        map=verdict.map,
        name=_pieces(verdict.name),
        place=f"{verdict.file}:{verdict.line}",
        href=href,
        declared=DECLARED[verdict.declared],
        status=verdict.status,
        details=_details(verdict),
        observed=observed,
        clash="; ".join(clash for clash in clashes if clash),
        evidence=_evidence(verdict.evidence),
    )


def _declaration_clash(verdict: HookVerdict) -> str:
    expected = verdict.default if verdict.status == "conditional" else verdict.status
    if verdict.declared is True and expected == "inactive":
        return "declared active, the source says inactive"
    if verdict.declared is False and expected == "active":
        return "not declared, the source says active"
    return ""


def _details(verdict: HookVerdict) -> tuple[str, ...]:
    return (
        *((f"by default {verdict.default}",) if verdict.default else ()),
        *((f"decided by {verdict.condition}",) if verdict.condition else ()),
        *((verdict.kind.replace("_", " "),) if verdict.kind else ()),
        *(("fail-open",) if verdict.fail_open else ()),
    )


def _evidence(sentence: str) -> tuple[tuple[str, bool], ...]:
    """Return the sentence in pieces: code stands between backticks, which code of its own may hold an odd one of."""
    pieces = sentence.split("`")
    if len(pieces) % 2 == 0:
        return ((sentence, False),)
    return tuple((piece, number % 2 == 1) for number, piece in enumerate(pieces) if piece)


def _problem(problem: FileProblem) -> str:
    place = f", line {problem.line}" if problem.line else ""
    return f"{problem.file}{place}: {problem.reason}"


def matrix_view(defenses: Sequence[ActiveHooks], metrics: MetricMap) -> MatrixView:
    """Return the matrix as a heat map whose cells hold words, a row for each defense."""
    cells = build_matrix(defenses, metrics)
    width = len(metrics.metrics)
    rows = tuple(
        MatrixRow(
            defense=defense.defense,
            where=_where(defense),
            cells=tuple(
                _sight_cell(one, open_hooks(defense, metric))
                for one, metric in zip(cells[start : start + width], metrics.metrics, strict=True)
            ),
        )
        for defense, start in zip(defenses, range(0, len(cells), width), strict=True)
    )
    heads = tuple(MetricHead(parts=_pieces(metric.name), title=metric.title) for metric in metrics.metrics)
    return MatrixView(metrics=heads, rows=rows, reasons=_reasons(cells, metrics), cells=_cells_in_words(cells))


def _pieces(name: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^_.]*[_.]?", name)[:-1])


def _where(defense: ActiveHooks) -> str:
    acts = f"acts at {named_hooks(defense.active)}" if defense.active else "acts nowhere"
    return f"{acts}; not told by the source: {named_hooks(defense.undecided)}" if defense.undecided else acts


def _sight_cell(cell: MatrixCell, unknown: tuple[Hook, ...]) -> SightCell:
    return SightCell(
        sight=cell.sight, word=SIGHT_WORDS[cell.sight], codes=_codes(cell.hooks), open_codes=_codes(unknown)
    )


def _codes(hooks: Iterable[Hook]) -> str:
    return ", ".join(CODES[hook] for hook in hooks)


def _reasons(cells: Iterable[MatrixCell], metrics: MetricMap) -> TableView:
    """Return why metrics see a hook through another part or as a nuisance, for those that the matrix holds."""
    found: dict[tuple[Hook, Sight, str], dict[str, None]] = {}
    for cell in cells:
        metric = metrics.metric(cell.metric)
        for hook in cell.hooks:
            reason = metric.through.get(hook) or metric.nuisance.get(hook)
            if reason:
                found.setdefault((hook, cell.sight, reason), {})[cell.metric] = None
    rows = [
        (SIGHT_WORDS[sight], named_hooks([hook]), ", ".join(names), reason)
        for (hook, sight, reason), names in found.items()
    ]
    caption = "Why a metric is indirect or moves as a nuisance only"
    return text_table(("sight", "hook", "metrics", "through what, or why"), rows, caption=caption)


def _cells_in_words(cells: Iterable[MatrixCell]) -> TableView:
    rows = [(cell.defense, cell.metric, SIGHT_WORDS[cell.sight], cell.words) for cell in cells]
    return text_table(("defense", "metric", "sight", "in words"), rows, caption="Every cell in words")


def text_table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, numeric: Collection[str] = ()
) -> TableView:
    """Return a table of texts; the columns named in `numeric` stand to the right."""
    numbers = [header in numeric for header in headers]

    def cells(texts: Sequence[str]) -> tuple[Cell, ...]:
        return tuple(Cell(text=text, numeric=number) for text, number in zip(texts, numbers, strict=True))

    return TableView(caption=caption, headers=cells(headers), rows=tuple(cells(row) for row in rows))
