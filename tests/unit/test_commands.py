"""Small commands say in one line what is wrong, or that nothing was to be done."""

from __future__ import annotations

from pathlib import Path

import pytest

from mragaudit.cli import main

EXAMPLE = Path(__file__).parents[2] / "resources" / "example_bundle" / "example.tar.gz"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a run whose rows were purged, below the working directory."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results" / "mine"
    (folder / "metrics").mkdir(parents=True)
    for name in ("manifest.json", "metrics/judge.1-of-1.json"):
        (folder / name).write_text("{}")
    return folder


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what a command prints, errors included."""
    monkeypatch.setattr("sys.argv", ["mragaudit", *arguments])
    with pytest.raises(SystemExit):
        main()
    captured = capsys.readouterr()
    return captured.out + captured.err


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("purge", "mine", "--yes"), "nothing was left to delete in results/mine"),
        (
            ("summary", "mine"),
            "error: results/mine/report.html: there is no report; the run has not finished, or was purged",
        ),
        (("summary", "other"), "error: results/other: no such run; name a folder below results/"),
        (
            ("unpack", str(EXAMPLE), "results/mine/manifest.json/new"),
            "error: results/mine/manifest.json/new: cannot be made (File exists); name a folder that can be written",
        ),
        (("plan",), "error: config.yaml: no such file here; type the command in the folder that holds the Snakefile"),
    ],
)
def test_one_line_says_it(
    arguments: tuple[str, ...], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(monkeypatch, capsys, *arguments) == f"{line}\n"
