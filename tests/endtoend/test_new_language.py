"""A language is data: French comes by files and one line of config."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from run_stages import CASES, REPOSITORY, run_stages, scripted_settings

from mragaudit.errors import ConfigError
from mragaudit.paths import RunPaths
from mragaudit.records.base import read_records
from mragaudit.records.queries import Query, query_key
from mragaudit.report.trial_data import escape_json
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.preflight import check_run

FRENCH = CASES / "french"
FRENCH_FILES = (
    "languages/fr.yaml",
    "controls/fr.yaml",
    "prompts/translator/fr.yaml",
    "prompts/back_translator/fr.yaml",
    "prompts/judge/fr.yaml",
    "prompts/generator/fr.yaml",
)


def resources_with_french(folder: Path) -> Path:
    """Return a copy of the resources with the French files beside the others."""
    copied = folder / "resources"
    shutil.copytree(REPOSITORY / "resources", copied)
    shutil.copytree(FRENCH, copied, dirs_exist_ok=True)
    return copied


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    folder = tmp_path_factory.mktemp("french")
    resources = resources_with_french(folder)
    settings = scripted_settings(languages=["en", "fr"], resources=str(resources))
    return run_stages(settings, results=folder / "results")


def test_french_is_these_files_and_no_other() -> None:
    assert sorted(path.relative_to(FRENCH).as_posix() for path in FRENCH.rglob("*.yaml")) == sorted(FRENCH_FILES)


def test_f1_has_french_rows_over_all_documents(finished: RunPaths) -> None:
    table = read_table(finished.table("f1_output_only"))
    rows = table[(table["lang"] == "fr") & (table["pii_group"] == "all") & (table["query_source"] == "template")]
    counted = {row["filter_variant"]: row["n_documents"] for row in rows.to_dict("records")}
    assert counted == {"none": 5, "regex_ascii": 5, "regex_unicode": 5}


def test_the_funnel_follows_french_trials(finished: RunPaths) -> None:
    table = read_table(finished.table("funnel"))
    queried = table[(table["lang"] == "fr") & (table["stage"] == "queried") & (table["pii_group"] == "all")]
    assert set(queried[queried["query_source"] == "template"]["n_trials"]) == {15}


def test_english_is_contrasted_with_french(finished: RunPaths) -> None:
    table = read_table(finished.table("contrasts"))
    pairs = set(zip(table["lang_a"], table["lang_b"], strict=True))
    assert pairs == {("en", "fr")}


def test_the_judge_is_controlled_in_french(finished: RunPaths) -> None:
    queries = read_records(finished.shards("queries", ["1-of-1"])[0], Query, key=query_key)
    french = sorted(query.control_id or "" for query in queries if query.lang == "fr")
    assert french == ["attack-01", "attack-02", "benign-01", "benign-02"]


def test_french_prompts_reach_the_generator(finished: RunPaths) -> None:
    """The echoing generator answers with its last turn, which holds the labels of the French template."""
    answers = finished.shards("generations", ["1-of-1"])[0].read_text(encoding="utf-8")
    assert answers.count("Réponse :") == 20


def test_the_report_calls_the_language_by_its_name(finished: RunPaths) -> None:
    page = finished.report.read_text(encoding="utf-8")
    assert escape_json('"fr":["French","ltr"]') in page
    assert "(English, French)" in page


@pytest.mark.parametrize("name", FRENCH_FILES)
def test_a_missing_french_file_is_named_before_any_stage_runs(name: str, tmp_path: Path) -> None:
    resources = resources_with_french(tmp_path)
    (resources / name).unlink()
    settings = scripted_settings(languages=["en", "fr"], resources=str(resources))
    with pytest.raises(ConfigError) as caught:
        check_run(settings, results=tmp_path / "results")
    message = str(caught.value)
    assert message.startswith(f"{resources / name}: ")
    assert "\n" not in message
    assert not (tmp_path / "results").exists()


def test_without_a_judge_a_language_needs_no_controls(tmp_path: Path) -> None:
    resources = resources_with_french(tmp_path)
    (resources / "controls" / "fr.yaml").unlink()
    settings = scripted_settings(languages=["en", "fr"], resources=str(resources), judge={"variants": []})
    check_run(settings, results=tmp_path / "results")
