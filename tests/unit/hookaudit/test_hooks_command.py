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


def test_the_page_goes_to_a_file_with_places_that_lead_to_the_source(hooks, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text(STUB)
    done = hooks(
        "src", "--format", "html", "--output", "page.html", "--source-url", "https://host.example/{file}#{line}"
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert 'href="https://host.example/src/code.py#2">code.py:2</a>' in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "no such file or folder"),
        (["code.py", "--fail-on", "inactiv"], 'did you mean "inactive"'),
        (["code.py", "--format", "xml"], "allowed: html, json, sarif, table"),
        (["code.py", "--source-url", "https://h/{file}"], "with --format table there are none"),
        (["code.py", "--format", "html", "--source-url", "https://h/"], "does not lead to a source file"),
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


MASKER = "class A:\n    def process_response(self, response):\n        return response.upper()\n"


def test_predictions_go_to_the_terminal_by_defense_attack_and_metric(hooks, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "code.py").write_text(MASKER)
    printed = hooks("predict", "code.py").stdout
    for words in ("acts at H4 response", "rag_thief", "expected to move", "not observable"):
        assert words in printed
    assert "46 predictions on 1 defenses: 44 expected to move, 0 indirect, 1 nuisance, 1 not observable" in printed


@pytest.mark.usefixtures("stub")
def test_a_defense_that_acts_nowhere_is_one_line_of_the_predictions(hooks):
    assert "acts nowhere, so that no metric can show an effect of it: A" in hooks("predict", "code.py").stdout


def test_predictions_as_json_hold_one_row_an_attack_and_metric_and_the_files_left_out(hooks, tmp_path):
    (tmp_path / "code.py").write_text(MASKER)
    (tmp_path / "broken.py").write_text("def f(:\n")
    assert hooks("predict", ".", "--format", "json", "--output", "out.json").returncode == 0
    report = json.loads((tmp_path / "out.json").read_text())
    assert len(report["predictions"]) == sum(report["counts"].values()) == 46
    (found,) = [p for p in report["predictions"] if (p["attack"], p["metric"]) == ("mi", "mi_auc")]
    assert (found["expectation"], found["hooks"]) == ("nuisance", ["response"])
    assert report["problems"][0]["file"] == "broken.py"


def test_maps_of_metrics_and_attacks_of_ones_own_take_the_place_of_the_shipped_ones(hooks, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "code.py").write_text(MASKER)
    (tmp_path / "m.yaml").write_text(
        "schema_version: 1\nmetrics:\n  - {name: tone, title: tone, channel: text, observes: [response]}\n"
    )
    (tmp_path / "a.yaml").write_text(
        "schema_version: 1\nattacks:\n  - {name: x, title: x, kind: probe, spec: own, aim: x, metrics: [tone]}\n"
    )
    done = hooks("predict", "code.py", "--metrics", "m.yaml", "--attacks", "a.yaml")
    assert "1 predictions on 1 defenses: 1 expected to move" in done.stdout


@pytest.mark.usefixtures("stub")
def test_a_missing_attack_map_is_one_clear_message(hooks):
    done = hooks("predict", "code.py", "--attacks", "none.yaml")
    assert (done.returncode, "none.yaml: the attack map is missing" in done.stderr) == (1, True)
