"""`mragaudit hooks` as a person or a build calls it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from mragaudit.cli import main

STUB = "class A:\n    def process_response(self, response):\n        return response\n"


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def hooks(tmp_path, monkeypatch, capsys):
    """The command as in a terminal whose working directory is `tmp_path`."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Done:
        monkeypatch.setattr("sys.argv", ["mragaudit", "hooks", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return Done(returncode=int(stopped.value.code or 0), stdout=captured.out, stderr=captured.err)

    return run


@pytest.fixture
def stub(tmp_path):
    (tmp_path / "code.py").write_text(STUB)
    return tmp_path


@pytest.mark.usefixtures("stub")
def test_the_table_shows_hook_place_status_and_counts(hooks):
    done = hooks("code.py")
    assert done.returncode == 0, done.stderr
    for word in ("H4 response", "code.py:2", "inactive", "1 hooks in 1 files"):
        assert word in done.stdout


@pytest.mark.usefixtures("stub")
def test_a_status_that_must_fail_the_build_has_an_exit_code_of_its_own(hooks):
    assert hooks("code.py", "--fail-on", "inactive").returncode == 3
    assert hooks("code.py", "--fail-on", "unknown", "--fail-on", "conditional").returncode == 0


@pytest.mark.usefixtures("stub")
def test_a_known_finding_does_not_fail_the_build(hooks):
    assert hooks("code.py", "--write-baseline", "known.json").returncode == 0
    assert hooks("code.py", "--baseline", "known.json", "--fail-on", "inactive").returncode == 0


def test_sarif_and_json_go_to_a_file_or_the_standard_output(hooks, stub):
    assert hooks("code.py", "--format", "sarif", "--output", "out.sarif").returncode == 0
    log = json.loads((stub / "out.sarif").read_text())
    assert log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "code.py"
    report = json.loads(hooks("code.py", "--format", "json").stdout)
    assert report["inventory"]["verdicts"][0]["status"] == "inactive"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "no such file or folder"),
        (["code.py", "--fail-on", "inactiv"], 'did you mean "inactive"'),
        (["code.py", "--format", "xml"], "allowed: json, sarif, table"),
        (["code.py", "--only-hooks"], "give one with --hooks"),
        (["code.py", "--hooks", "none.yaml"], "this hook map is missing"),
    ],
)
@pytest.mark.usefixtures("stub")
def test_a_mistake_is_one_clear_message(hooks, arguments, words):
    done = hooks(*arguments)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert words in done.stderr


def test_no_hook_at_all_says_what_to_do(hooks, tmp_path):
    (tmp_path / "code.py").write_text("x = 1\n")
    assert "no hook found; name yours in a map: --hooks" in hooks("code.py").stdout
