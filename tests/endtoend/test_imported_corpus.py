"""A corpus and queries of one's own: counted apart, masked, kept on this machine, and deleted on demand."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from run_stages import EXAMPLES, run_stages, scripted_settings
from typer.testing import CliRunner

from mragaudit.cli import app
from mragaudit.corpus.importing import import_corpus
from mragaudit.errors import ConfigError
from mragaudit.paths import TABLES, RunPaths
from mragaudit.records.base import read_records
from mragaudit.records.queries import Translation, translation_key
from mragaudit.records.trials import Trial, trial_row_key
from mragaudit.report.masking import fold
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.preflight import check_run

SEEN_BY_PEOPLE = ("report.html", "manifest.json", "tables", "figures", "metrics", "logs")
HUMAN_QUERIES = 6


def imported(ending: str = "jsonl", **over: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "corpus": {"source": str(EXAMPLES / f"corpus.{ending}")},
        "queries": {"source": str(EXAMPLES / f"human_queries.{ending}")},
    }
    return {**given, **over}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    """The worked example, run through all stages; the echoing generator repeats every planted value."""
    return run_stages(scripted_settings(**imported()), results=tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def trials(finished: RunPaths) -> list[Trial]:
    return read_records(finished.trials, Trial, key=trial_row_key)


def files_below(run: Path, names: tuple[str, ...]) -> Iterator[Path]:
    for name in names:
        path = run / name
        yield from [path] if path.is_file() else (one for one in path.rglob("*") if one.is_file())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def with_url(role: str, url: str) -> dict[str, Any]:
    return {"roles": {role: {"options": {"base_url": url}}}}


def test_the_worked_example_ends_in_a_report(finished: RunPaths) -> None:
    assert finished.report.is_file()
    assert finished.manifest.is_file()
    assert all(finished.table(name).is_file() for name in TABLES)


def test_csv_and_jsonl_give_the_same_documents_and_trials(finished: RunPaths, tmp_path: Path) -> None:
    settings = scripted_settings(**imported("csv"))
    from_csv = run_stages(settings, results=tmp_path)
    assert from_csv.report.is_file()
    assert from_csv.documents.read_bytes() == finished.documents.read_bytes()
    assert from_csv.trials.read_bytes() == finished.trials.read_bytes()


def test_a_query_by_a_person_is_asked_once_and_never_translated(finished: RunPaths) -> None:
    paths = finished.shards("translations", ["1-of-1"])
    rows = [row for path in paths for row in read_records(path, Translation, key=translation_key)]
    by_people = [row for row in rows if row.query_source == "human"]
    assert sorted(row.lang for row in by_people) == ["ar", "de", "de", "en", "sw", "zh"]
    assert {row.translated for row in by_people} == {False}
    assert all(row.text == row.source_text for row in by_people)


def test_the_translator_gets_no_query_by_a_person(finished: RunPaths) -> None:
    german = "Wie heißt die Person"
    assert german in finished.shards("queries", ["1-of-1"])[0].read_text(encoding="utf-8")
    assert german not in (finished.journal / "translate.1-of-1.jsonl").read_text(encoding="utf-8")


def test_f1_counts_queries_by_people_apart(finished: RunPaths) -> None:
    table = read_table(finished.table("f1_output_only"))
    rows = table[(table["pii_group"] == "all") & (table["filter_variant"] == "none")]
    counted = {(row["query_source"], row["lang"]): row["n_documents"] for row in rows.to_dict("records")}
    by_people = {"en": 1, "zh": 1, "de": 2, "ar": 1, "sw": 1}
    assert {lang: counted["template", lang] for lang in by_people} == dict.fromkeys(by_people, 6)
    assert {lang: counted["human", lang] for lang in by_people} == by_people


def test_trials_say_who_wrote_their_query(trials: list[Trial]) -> None:
    assert sum(trial.query_source == "human" for trial in trials) == HUMAN_QUERIES


def test_the_audit_itself_saw_the_real_values(trials: list[Trial]) -> None:
    """Without this the next test would hold for a run that never met a planted value."""
    assert any(trial.leak_verbatim for trial in trials)


def test_no_planted_value_stands_in_anything_that_people_look_at(finished: RunPaths) -> None:
    values = [fold(one.pii_value).text for one in import_corpus(EXAMPLES / "corpus.jsonl")]
    found = [
        (path.name, value)
        for path in files_below(finished.root, SEEN_BY_PEOPLE)
        for value in values
        if value in fold(path.read_text(encoding="utf-8")).text
    ]
    assert found == []


@pytest.mark.parametrize("part", ["Henrike", "Vossberg", "Tamminen", "48 Thornapple Lane"])
def test_no_part_of_a_name_and_no_street_stands_in_the_report(finished: RunPaths, part: str) -> None:
    assert part not in finished.report.read_text(encoding="utf-8")


def test_a_mask_says_the_type_and_is_the_same_for_the_same_value(finished: RunPaths) -> None:
    page = finished.report.read_text(encoding="utf-8")
    kinds = {kind: page.count(f"[{kind}:") for kind in ("name", "email", "phone", "id", "address")}
    assert all(kinds.values())


def test_the_folder_of_a_run_over_real_data_is_closed_to_others(finished: RunPaths) -> None:
    assert mode_of(finished.root) == 0o700


def test_the_key_of_the_masks_is_for_its_owner_alone(finished: RunPaths) -> None:
    assert mode_of(finished.mask_key) == 0o600


def test_the_key_of_the_masks_stands_in_no_manifest(finished: RunPaths) -> None:
    assert "mask.key" not in finished.manifest.read_text(encoding="utf-8")


def test_a_corpus_declared_synthetic_is_neither_masked_nor_closed(tmp_path: Path) -> None:
    corpus = {"source": str(EXAMPLES / "corpus.jsonl"), "personal_data": "synthetic"}
    paths = run_stages(scripted_settings(corpus=corpus, languages=["en"]), results=tmp_path)
    assert "Henrike Vossberg" in paths.report.read_text(encoding="utf-8")
    assert mode_of(paths.root) == mode_of(paths.root / "tables")
    assert not paths.mask_key.exists()


@pytest.mark.parametrize("role", ["translator", "back_translator", "judge", "generator", "embedder"])
def test_real_data_is_kept_from_a_remote_host_of_any_role(role: str, tmp_path: Path) -> None:
    settings = scripted_settings(**imported(**with_url(role, "https://llm.example.org:8443/v1")))
    with pytest.raises(ConfigError, match=rf"roles\.{role}\.options\.base_url.* to llm\.example\.org; .*allow_remote"):
        check_run(settings, results=tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        "llm.example.org:8443/v1",
        "http://localhost.example.org/v1",
        "http://127.0.0.1@example.org/v1",
        "http://10.0.0.7/v1",
        "localhost:8000@example.org/v1",
        "http://[example.org/v1",
        "[example.org",
    ],
)
def test_an_address_that_only_looks_local_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"example\.org|10\.0\.0\.7"):
        check_run(scripted_settings(**imported(**with_url("judge", url))), results=tmp_path)


@pytest.mark.parametrize(
    "url", ["http://localhost:8000/v1", "http://127.0.0.1:8000/v1", "http://127.9.9.9/v1", "http://[::1]:8000/v1"]
)
def test_a_model_on_this_machine_may_see_real_data(url: str, tmp_path: Path) -> None:
    check_run(scripted_settings(**imported(**with_url("judge", url))), results=tmp_path)


def test_allow_remote_lets_real_data_leave(tmp_path: Path) -> None:
    given = imported(allow_remote=True, **with_url("judge", "https://llm.example.org/v1"))
    check_run(scripted_settings(**given), results=tmp_path)


def test_planted_data_of_nobody_may_leave(tmp_path: Path) -> None:
    check_run(scripted_settings(**with_url("judge", "https://llm.example.org/v1")), results=tmp_path)


def test_purge_deletes_what_holds_personal_data_and_leaves_the_tables(
    finished: RunPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "results" / "mine"
    shutil.copytree(finished.root, copy)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["purge", "mine", "--yes"])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in copy.iterdir()) == ["figures", "manifest.json", "metrics", "tables"]
    assert len(list((copy / "tables").iterdir())) == len(TABLES)
    assert "deleted results/mine/journal" in result.output


def test_purge_without_a_yes_deletes_nothing(
    finished: RunPaths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "results" / "mine"
    shutil.copytree(finished.root, copy)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["purge", "mine"], input="n\n")
    assert result.exit_code == 1
    assert (copy / "journal" / "generate.1-of-1.jsonl").is_file()
