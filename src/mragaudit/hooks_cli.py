"""`mragaudit hooks`: the hook inventory of someone's code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from rich.console import Console
from typer.core import TyperGroup

from mragaudit.errors import ConfigError, DataError, did_you_mean
from mragaudit.hookaudit.attacks import read_attacks, shipped_attacks
from mragaudit.hookaudit.baseline import failing, read_baseline, write_baseline
from mragaudit.hookaudit.forecast import forecast, print_forecast, render_forecast
from mragaudit.hookaudit.inventory import Inventory, audit_path
from mragaudit.hookaudit.maps import HookMap, read_map, shipped_maps
from mragaudit.hookaudit.metrics import read_metrics, shipped_metrics
from mragaudit.hookaudit.probe.records import Observation
from mragaudit.hookaudit.probe.run import probe_inventory
from mragaudit.hookaudit.render import print_inventory, render_json
from mragaudit.hookaudit.sarif import render_sarif
from mragaudit.hookaudit.source import locate
from mragaudit.hookaudit.verdicts import Status
from mragaudit.records.base import write_bytes, write_text
from mragaudit.report.hooks_page import HooksReport, render_hooks
from mragaudit.report.hooks_views import SourceLinks

Format = Literal["table", "json", "sarif", "html"]
ForecastFormat = Literal["table", "json"]
FILE_WIDTH = 160
FINDINGS_EXIT_CODE = 3
"""Exit code for findings that must fail a build; 1 is an error of ours and 2 one of usage."""


class DefaultGroup(TyperGroup):
    """A group whose first word may be a path: then the inventory is meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the inventory's name before what is no name of a command."""
        if args and args[0] not in {*self.commands, "--help"}:
            args = ["inventory", *args]
        return list(super().parse_args(ctx, args))


app = typer.Typer(cls=DefaultGroup, no_args_is_help=True, help="Say where the privacy defenses of some code act.")


Audited = Annotated[str, typer.Argument(help="file, folder, or dotted name of an installed module")]
OwnMaps = Annotated[list[Path] | None, typer.Option("--hooks", help="hook map of your own; may be given again")]
OnlyOwnMaps = Annotated[bool, typer.Option("--only-hooks", help="leave out the maps that ship")]
Output = Annotated[Path | None, typer.Option("--output", help="file instead of the terminal")]


@app.command("inventory")
def inventory_command(  # noqa: PLR0917  # typer reads options from the signature
    path_or_module: Audited,
    hooks: OwnMaps = None,
    only_hooks: OnlyOwnMaps = False,
    fmt: Annotated[str, typer.Option("--format", help="table, json, sarif or html")] = "table",
    output: Output = None,
    fail_on: Annotated[list[str] | None, typer.Option("--fail-on", help="status that fails the build")] = None,
    baseline: Annotated[Path | None, typer.Option("--baseline", help="file of known findings")] = None,
    write: Annotated[Path | None, typer.Option("--write-baseline", help="write all findings as known")] = None,
    probe: Annotated[bool, typer.Option("--probe", help="import the code in a sandbox and run the hooks")] = False,
    probe_unsafe: Annotated[
        bool, typer.Option("--probe-unsafe", help="as --probe, without a sandbox where none works")
    ] = False,
    source_url: Annotated[
        str | None, typer.Option("--source-url", help="html: address of a source line, with {file} and {line} in it")
    ] = None,
) -> None:
    """List every hook with file, line, status and evidence; the code is parsed and never imported."""
    statuses = _statuses(fail_on or [])
    chosen = _choice("--format", fmt, get_args(Format))
    root = locate(path_or_module)
    links = _links(source_url, fmt=chosen, root=root)
    inventory = audit_path(root, _maps(hooks or [], only_own=only_hooks))
    known = read_baseline(baseline) if baseline is not None else None
    observations = probe_inventory(root, inventory, unsafe=probe_unsafe) if probe or probe_unsafe else None
    if write is not None:
        typer.echo(f"{write_baseline(write, inventory)} known findings written to {write}", err=True)
    _show(inventory, chosen, root=root, known=known, output=output, observations=observations, links=links)
    if failing(inventory, statuses, known=known or ()):
        raise typer.Exit(FINDINGS_EXIT_CODE)


@app.command("predict")
def predict_command(  # noqa: PLR0917  # typer reads options from the signature
    path_or_module: Audited,
    hooks: OwnMaps = None,
    only_hooks: OnlyOwnMaps = False,
    metrics: Annotated[Path | None, typer.Option("--metrics", help="metric map in place of the one that ships")] = None,
    attacks: Annotated[Path | None, typer.Option("--attacks", help="attack map in place of the one that ships")] = None,
    fmt: Annotated[str, typer.Option("--format", help="table or json")] = "table",
    output: Output = None,
) -> None:
    """Say, before anything is run, which metric of which attack can show an effect of each class with hooks."""
    chosen = _choice("--format", fmt, get_args(ForecastFormat))
    metric_map = read_metrics(metrics) if metrics is not None else shipped_metrics()
    attack_map = read_attacks(attacks) if attacks is not None else shipped_attacks()
    inventory = audit_path(locate(path_or_module), _maps(hooks or [], only_own=only_hooks))
    made = forecast(inventory, metrics=metric_map, attacks=attack_map)
    if chosen == "json":
        _write(render_forecast(made), output)
    else:
        with _console(output) as console:
            print_forecast(made, console=console, metrics=metric_map)


def _maps(paths: list[Path], *, only_own: bool) -> tuple[HookMap, ...]:
    own = tuple(read_map(path) for path in paths)
    if only_own and not own:
        raise ConfigError("--only-hooks leaves no hook map; give one with --hooks")
    return own if only_own else (*own, *shipped_maps())


def _statuses(names: list[str]) -> list[Status]:
    allowed = [status for status in get_args(Status) if status != "active"]
    return [_choice("--fail-on", name, allowed) for name in names]  # type: ignore[misc]  # checked against Status


def _choice(option: str, name: str, allowed: list[str] | tuple[str, ...]) -> str:
    if name not in allowed:
        raise DataError(f'{option} "{name}" is unknown; {did_you_mean(name, allowed)}')
    return name


def _show(
    inventory: Inventory,
    fmt: str,
    *,
    root: Path,
    known: frozenset[str] | None,
    output: Path | None,
    observations: tuple[Observation, ...] | None,
    links: SourceLinks | None,
) -> None:
    if fmt == "table":
        _show_table(inventory, known=known or frozenset(), output=output, observations=observations)
    elif fmt == "json":
        _write(render_json(inventory, observations), output)
    elif fmt == "sarif":
        _write(render_sarif(inventory, folder=_folder(root), known=known), output)
    else:
        _write(_page(inventory, observations, links=links), output)


def _page(inventory: Inventory, observations: tuple[Observation, ...] | None, *, links: SourceLinks | None) -> bytes:
    report = HooksReport(
        inventory=inventory,
        observations=observations,
        metrics=shipped_metrics(),
        attacks=shipped_attacks(),
        links=links,
    )
    return render_hooks(report).encode("utf-8")


def _links(url: str | None, *, fmt: str, root: Path) -> SourceLinks | None:
    if url is None:
        return None
    if fmt != "html":
        raise DataError(f"--source-url makes links of a page; with --format {fmt} there are none")
    folder = _folder(root)
    return SourceLinks(url=url, folder="" if Path(folder).is_absolute() else folder)


def _show_table(
    inventory: Inventory, *, known: frozenset[str], output: Path | None, observations: tuple[Observation, ...] | None
) -> None:
    with _console(output) as console:
        print_inventory(inventory, console=console, known=known, observations=observations)


def _write(content: bytes, output: Path | None) -> None:
    if output is not None:
        write_bytes(output, content)
    else:
        sys.stdout.buffer.write(content)


@contextmanager
def _console(output: Path | None) -> Iterator[Console]:
    """Give the terminal, or a file that is written once all is printed."""
    if output is None:
        yield Console()
        return
    text = StringIO()
    yield Console(file=text, width=FILE_WIDTH)
    write_text(output, text.getvalue())


def _folder(root: Path) -> str:
    """Return what stands before the paths of the files, relative to the working directory where it is inside."""
    folder = root if root.is_dir() else root.parent
    resolved, here = folder.resolve(), Path.cwd()
    return resolved.relative_to(here).as_posix() if resolved.is_relative_to(here) else folder.as_posix()
