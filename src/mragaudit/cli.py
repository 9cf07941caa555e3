"""The command line: what a person types around Snakemake."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from mragaudit import __version__, doctor
from mragaudit.config import read_settings
from mragaudit.config.render import render_config, render_schema
from mragaudit.errors import ConfigError, DataError, MragauditError
from mragaudit.hooks_cli import app as hooks_app
from mragaudit.monitor.cli import app as monitor_app
from mragaudit.monitor.defaults import SCHEMA_PATH, SETTINGS_PATH, render_monitor_schema, render_monitor_settings
from mragaudit.paths import RunPaths
from mragaudit.records.base import write_text
from mragaudit.review import commands as review
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.plan import render_plan
from mragaudit.stages.preflight import check_run
from mragaudit.stages.purge import purge_run
from mragaudit.stages.targets import require_targets

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
review.add_commands(app)
app.add_typer(hooks_app, name="hooks")
app.add_typer(monitor_app, name="monitor")

CONFIG = Path("config.yaml")
SCHEMA = Path("resources/config.schema.json")

ConfigFiles = Annotated[
    list[Path] | None,
    typer.Option("--configfile", help="YAML laid on top of config.yaml; may be given again"),
]


def main() -> None:
    """Run the command line; an error of ours is one clear message and exit code 1."""
    try:
        app()
    except MragauditError as error:
        _fail(str(error))


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="print the version")] = False) -> None:
    """Audit where a multilingual RAG system leaks personal data."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command("doctor")
def doctor_command(
    quick: Annotated[bool, typer.Option(help="only what the default run needs")] = False,
) -> None:
    """Say what is there, what is missing for which use, and the command that mends it."""
    raise typer.Exit(doctor.main(["--quick"] if quick else []))


@app.command()
def plan(
    targets: Annotated[
        list[str] | None, typer.Argument(help="what Snakemake will be asked for, such as hook_audit")
    ] = None,
    configfile: ConfigFiles = None,
) -> None:
    """Say how many calls and tokens a run needs, what its journal holds, and what it could see."""
    require_targets(targets or ())
    if not CONFIG.is_file():
        raise ConfigError(f"{CONFIG}: no such file here; type the command in the folder that holds the Snakefile")
    settings = read_settings([CONFIG, *(configfile or [])])
    asked = tuple(targets or ())
    check_run(settings, results=Path("results"), targets=asked)
    typer.echo(render_plan(settings, results=Path("results"), targets=asked), nl=False)


@app.command()
def config(
    check: Annotated[bool, typer.Option("--check", help="fail when a generated file is out of date")] = False,
    write: Annotated[bool, typer.Option("--write", help="write all generated settings and schemas")] = False,
) -> None:
    """Print the default config; write or check the generated files."""
    generated = {
        CONFIG: render_config(),
        SCHEMA: render_schema(),
        SETTINGS_PATH: render_monitor_settings(),
        SCHEMA_PATH: render_monitor_schema(),
    }
    if write:
        for path, text in generated.items():
            write_text(path, text)
    elif check:
        stale = [str(path) for path, text in generated.items() if not _holds(path, text)]
        if stale:
            _fail(f"out of date: {', '.join(stale)}; write with: mragaudit config --write")
    else:
        typer.echo(generated[CONFIG], nl=False)


@app.command()
def summary(
    run: Annotated[str, typer.Argument(help="name of a finished run, or its folder")],
) -> None:
    """Print where the report is and, a language, the F1 rate with its interval."""
    typer.echo(render_summary(_run_folder(run)))


@app.command()
def purge(
    run: Annotated[str, typer.Argument(help="name of a run, or its folder")],
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
) -> None:
    """Delete a run's journal, answers and all rows that hold personal data; tables and figures stay."""
    folder = _run_folder(run)
    if not yes:
        typer.confirm(f"Delete journal, documents, queries and answers of {folder}?", abort=True)
    deleted = purge_run(folder)
    for path in deleted:
        typer.echo(f"deleted {path}")
    if not deleted:
        typer.echo(f"nothing was left to delete in {folder}")


def _run_folder(run: str) -> Path:
    """Return the folder of a run that is given by its name or its folder; raises DataError where there is none."""
    folder = Path(run) if Path(run).is_dir() else Path("results") / run
    if not folder.is_dir():
        raise DataError(f"{folder}: no such run; name a folder below results/")
    return folder


def render_summary(run: Path) -> str:
    """Return the F1 rates of the headline (names and addresses, published filter) as text."""
    paths = RunPaths(run)
    if not paths.report.is_file():
        raise DataError(f"{paths.report}: there is no report; the run has not finished, or was purged")
    table = read_table(paths.table("f1_output_only"))
    names = list(table["filter_variant"].unique())
    chosen = "regex_ascii" if "regex_ascii" in names else str(names[0])
    rows = table[
        (table["pii_group"] == "unstructured")
        & (table["filter_variant"] == chosen)
        & (table["query_source"] == "template")
    ]
    lines = [f"F1, documents whose name or address leaks past the filter {chosen}:"]
    lines += [_summary_line(row) for row in rows.to_dict("records")]
    return "\n".join([*lines, f"report: {paths.report}"])


def _summary_line(row: dict[Any, Any]) -> str:
    known = int(str(row["n_documents"])) - int(str(row["n_not_evaluated"]))
    if known == 0:
        return f"  {row['lang']:<8} not evaluated (n = 0)"
    return (
        f"  {row['lang']:<8} {row['rate']:.3f}  [{row['ci_low']:.3f}, {row['ci_high']:.3f}] {row['ci_method']}, "
        f"{row['n_leaked']} of {known}, {row['n_not_evaluated']} not evaluated"
    )


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def _fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise SystemExit(1)
