"""All scored rows of a grid by cell, and the groups of cells that one line of a table is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mragaudit.grid.cells import BENIGN, MEMBERSHIP, UNDEFENDED
from mragaudit.records.grid import (
    BenignOutcome,
    CallOutcome,
    CandidateScore,
    Cell,
    CellUse,
    DocumentExtraction,
    ItemOutcome,
    NelCount,
    Purpose,
)

Scored = TypeVar("Scored", ItemOutcome, NelCount, CandidateScore, DocumentExtraction, CallOutcome, BenignOutcome)


@dataclass(frozen=True, kw_only=True, slots=True)
class GridRows:
    """What was scored, by the id of its cell; cells that another one stands for have no rows of their own."""

    cells: tuple[Cell, ...]
    """Those that were run, sorted by id."""
    uses: Mapping[str, CellUse]
    items: Mapping[str, Sequence[ItemOutcome]]
    nel: Mapping[str, Sequence[NelCount]]
    candidates: Mapping[str, Sequence[CandidateScore]]
    extractions: Mapping[str, Sequence[DocumentExtraction]]
    calls: Mapping[str, Sequence[CallOutcome]]
    benign: Mapping[str, Sequence[BenignOutcome]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The cells of one attack on one arm, one a seed, beside those without a defense on the same seeds."""

    corpus: str
    mode: str
    arm: str
    attack: str
    cells: tuple[Cell, ...]
    baseline: tuple[Cell, ...]
    """In the order of `cells`; empty for the arm without a defense, and where that was not run."""

    @property
    def key(self) -> dict[str, str]:
        """Its cells in a table."""
        return {"corpus": self.corpus, "mode": self.mode, "arm": self.arm, "attack": self.attack}

    @property
    def label(self) -> str:
        """What tells it apart from other groups of the same arm and attack."""
        return f"{self.corpus} {self.mode}"


def calls_per_cell(cells: Iterable[Cell], rows: GridRows) -> float | None:
    """Return the mean number of target calls of some cells, None for none: what a share was bought with."""
    made = [rows.uses[cell.cell_id].n_target_calls for cell in cells]
    return sum(made) / len(made) if made else None


def by_cell(rows: Iterable[Scored]) -> dict[str, list[Scored]]:
    """Return the rows by the id of their cell, in order."""
    found: dict[str, list[Scored]] = {}
    for row in rows:
        found.setdefault(row.cell_id, []).append(row)
    return found


def groups(cells: Sequence[Cell], *, purpose: Purpose, keep: Callable[[str], bool]) -> Iterator[Group]:
    """Yield the groups of a purpose whose attack is kept, by corpus, mode, attack, arm; the undefended arm first."""
    found: dict[tuple[str, str, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.purpose == purpose and keep(cell.attack):
            found.setdefault((cell.corpus, cell.mode, cell.attack, cell.arm), []).append(cell)
    for corpus, mode, attack, arm in sorted(found, key=lambda key: (*key[:3], key[3] != UNDEFENDED, key[3])):
        members = found[corpus, mode, attack, arm]
        undefended = {cell.realisation: cell for cell in found.get((corpus, mode, attack, UNDEFENDED), [])}
        compared = arm != UNDEFENDED and all(cell.realisation in undefended for cell in members)
        baseline = [undefended[cell.realisation] for cell in members] if compared else []
        yield Group(corpus=corpus, mode=mode, arm=arm, attack=attack, cells=tuple(members), baseline=tuple(baseline))


def is_extraction(attack: str) -> bool:
    """Return whether an attack is after items and texts, and not after membership or the benign questions."""
    return attack not in {MEMBERSHIP, BENIGN}
