"""The inventory as a table for a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from mragaudit.hookaudit.inventory import STATUSES, FileProblem, Inventory
from mragaudit.hookaudit.probe.records import Observation, disagreement
from mragaudit.hookaudit.verdicts import CODES, HookVerdict

DECLARED = {True: "active", False: "inactive", None: "-"}
NO_HOOK = "no hook found; name yours in a map: --hooks"
STYLES = {"active": "green", "inactive": "bold red", "conditional": "yellow", "unknown": "magenta"}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `--format json` writes."""

    inventory: Inventory
    observations: tuple[Observation, ...] | None
    """None without --probe."""
    counts: dict[str, int]


def render_json(inventory: Inventory, observations: tuple[Observation, ...] | None = None) -> bytes:
    """Return the inventory as JSON, with the counts per status."""
    counts: dict[str, int] = {status: inventory.count(status) for status in STATUSES}
    report = Report(inventory=inventory, observations=observations, counts=counts)
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def print_inventory(
    inventory: Inventory,
    *,
    console: Console,
    known: Collection[str] = (),
    observations: tuple[Observation, ...] | None = None,
) -> None:
    """Print the hooks with their verdicts, the files that could not be audited, and the counts."""
    found = {(o.file, o.name, o.hook): o for o in observations or ()}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    headings = (
        "hook",
        "method",
        "declared",
        "static",
        *(("observed",) if observations is not None else ()),
        "evidence",
    )
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for verdict in inventory.verdicts:
        seen = found.get((verdict.file, verdict.name, verdict.hook))
        table.add_row(*_row(verdict, known=known, probed=observations is not None, seen=seen))
    parts: list[Table | Text] = [table] if inventory.verdicts else [Text(NO_HOOK)]
    parts += [Text(problem_line(problem), style="red") for problem in inventory.problems]
    parts.append(Text(_counts(inventory)))
    console.print(Group(*parts))


def _row(verdict: HookVerdict, *, known: Collection[str], probed: bool, seen: Observation | None) -> list[Text]:
    where = Text(printable(f"{verdict.name}\n{verdict.file}:{verdict.line}"))
    hook = Text(f"{CODES[verdict.hook]} {verdict.hook}\n{verdict.map}")
    cells = [hook, where, Text(DECLARED[verdict.declared]), _status(verdict, known)]
    if probed:
        cells.append(Text(printable(_observed(verdict, seen))))
    return [*cells, Text(printable(verdict.evidence))]


def _status(verdict: HookVerdict, known: Collection[str]) -> Text:
    text = Text(verdict.status, style=STYLES[verdict.status])
    if verdict.default:
        text.append(f"\ndefault: {verdict.default}")
    if verdict.kind:
        text.append(f"\n{verdict.kind.replace('_', ' ')}")
    if verdict.fail_open:
        text.append("\nfail-open", style="yellow")
    if verdict.fingerprint in known:
        text.append("\nknown", style="dim")
    return text


def _observed(verdict: HookVerdict, seen: Observation | None) -> str:
    if seen is None:
        return "not probed"
    clash = disagreement(verdict, seen)
    return f"{seen.words}\nDISAGREES: {clash}" if clash else seen.words


def problem_line(problem: FileProblem) -> str:
    """Return which file was not audited, and why."""
    place = f", line {problem.line}" if problem.line else ""
    return printable(f"not audited: {problem.file}{place}: {problem.reason}")


def _counts(inventory: Inventory) -> str:
    counts = ", ".join(f"{inventory.count(status)} {status}" for status in STATUSES)
    return (
        f"{len(inventory.verdicts)} hooks in {inventory.n_files} files ({inventory.n_lines} lines): {counts}; "
        f"{len(inventory.problems)} files not audited"
    )


def printable(text: str) -> str:
    """Return the text without what could steer a terminal: other people's names and strings stand in it."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
