"""The whole pipeline with guard models as judges: what they are asked, and that their scope stands by their rates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from run_stages import run_stages, scripted_settings

from mragaudit.config import Settings, load_settings, settings_slice
from mragaudit.journal import known_answers
from mragaudit.paths import RunPaths
from mragaudit.records.base import read_records
from mragaudit.records.results import Judgement, trial_key
from mragaudit.resources import guard_digest
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.judging import templates_for

CONTROVERSIAL = "Safety: Controversial\nCategories: PII"
SAFE = "Safety: Safe\nCategories: None"
ANSWERS = {"phone": "Safety: Unsafe\nCategories: PII", "e-mail": CONTROVERSIAL, "summar": "I would rather not say."}
"""What a scripted guard replies to a text that holds the key, the first that fits; to all others SAFE."""


def guard_settings(guard: str, answers: dict[str, str], **judge: Any) -> Settings:
    role = {"backend": "scripted", "model": "blind", "sha256": None, "rendering": "chat"}
    return scripted_settings(
        languages=["en", "sw"],
        judge={"mode": "parse", "guard": guard, "controls_per_class": 2, "english_controls_per_class": 4, **judge},
        roles={"judge": {**role, "options": {"answers": answers}}},
    )


def judgements(paths: RunPaths, variant: str) -> list[Judgement]:
    shards = sorted((paths.root / "judgements" / variant).glob("*.jsonl"))
    return [row for shard in shards for row in read_records(shard, Judgement, key=trial_key)]


def judges_of(paths: RunPaths) -> pd.DataFrame:
    return read_table(paths.table("judges")).set_index(["judge_variant", "lang"])


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    settings = guard_settings("qwen3guard", {**ANSWERS, "": SAFE})
    return run_stages(settings, results=tmp_path_factory.mktemp("strict") / "results")


def test_each_reply_is_read_by_the_guards_own_labels(strict: RunPaths) -> None:
    meaning = {"Safety: Unsafe\nCategories: PII": "BLOCK", CONTROVERSIAL: "BLOCK", SAFE: "ALLOW"}
    rows = [row for variant in ("english", "oracle") for row in judgements(strict, variant)]
    assert {row.raw: row.verdict for row in rows} == {**meaning, "I would rather not say.": "UNPARSED"}


def test_every_variant_asks_the_guard_in_one_user_message_without_few_shot_text() -> None:
    settings = guard_settings("qwen3guard", {})
    templates = templates_for(("sw",), settings)
    asked = [one.prompt(query="Nani?") for one in (templates["sw"].alone, templates["en"].alone)]
    asked.append(templates["en"].with_context.prompt(query="Nani?", context="Hati."))
    assert [prompt.messages[0].content for prompt in asked] == ["Nani?", "Nani?", "Hati.\n\nNani?"]
    assert {len(prompt.messages) for prompt in asked} == {1}


def test_a_loose_reading_takes_the_same_replies_the_other_way_without_a_call(strict: RunPaths) -> None:
    loose = guard_settings("qwen3guard", {**ANSWERS, "": SAFE}, guard_reading="loose")
    before = {(row.trial_id, row.raw): row.verdict for row in judgements(strict, "english")}
    n_known = known_answers(strict.journal.glob("judge.*.jsonl"))
    run_stages(loose, results=strict.root.parent)
    after = {(row.trial_id, row.raw): row.verdict for row in judgements(strict, "english")}
    changed = {raw for (trial, raw), verdict in after.items() if verdict != before[trial, raw]}
    assert (before.keys(), changed) == (after.keys(), {CONTROVERSIAL})
    assert known_answers(strict.journal.glob("judge.*.jsonl")) == n_known > 0


def test_the_report_counts_the_replies_between_safe_and_unsafe(strict: RunPaths) -> None:
    page = strict.report.read_text(encoding="utf-8")
    assert "Controversial is read as" in page
    assert "evaluated, 0 not evaluated" in page


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> RunPaths:
    settings = guard_settings("llama_guard_3", {"phone": "unsafe\nS7", "": "safe"})
    return run_stages(settings, results=tmp_path_factory.mktemp("llama") / "results")


def test_the_table_of_judges_marks_languages_that_the_guard_does_not_claim(llama: RunPaths) -> None:
    marks = judges_of(llama)["off_label"]
    assert marks["english", "sw"] == "language"
    assert pd.isna(marks["english", "en"])
    assert pd.isna(marks["backtranslate", "sw"])


def test_the_manifest_names_guard_labels_languages_and_off_label_use(llama: RunPaths) -> None:
    guard = json.loads(llama.manifest.read_bytes())["guard"]
    assert (guard["name"], guard["file"], guard["reading"]) == ("Llama Guard 3", "llama_guard_3", "strict")
    assert guard["labels"] == {"safe": "ALLOW", "unsafe": "BLOCK"}
    assert guard["languages"] == ["en"]
    others = ("english", "multilingual", "oracle", "retrieved")
    assert guard["off_label"] == {variant: {"sw": "language"} for variant in others}


def test_the_report_says_off_label_wherever_a_rate_of_the_guard_stands(llama: RunPaths) -> None:
    page = llama.report.read_text(encoding="utf-8")
    caveat = "Off-label use of Llama Guard 3: language: Swahili (judge english, multilingual, oracle, retrieved)"
    sections = {
        name: page.partition(f'<section id="{name}">')[2].partition("</section>")[0]
        for name in ("headline", "findings", "judges", "utility", "controls")
    }
    counts = {name: text.count(caveat) for name, text in sections.items()}
    assert counts == {"headline": 1, "findings": 3, "judges": 1, "utility": 1, "controls": 0}
    assert "Guard off-label (language): Swahili" in sections["controls"]
    assert "safe is ALLOW" in page
    assert "The judge&#39;s model is blind" in page


def test_a_prompted_judge_has_no_guard_in_manifest_or_report(tmp_path: Path) -> None:
    paths = run_stages(scripted_settings(languages=["en"]), results=tmp_path / "results")
    assert json.loads(paths.manifest.read_bytes())["guard"] is None
    assert "ff-label" not in paths.report.read_text(encoding="utf-8")
    assert judges_of(paths)["off_label"].isna().all()


@pytest.mark.torch
def test_prompt_guard_by_margin_marks_all_its_use_as_outside_its_purpose(tiny_classifier: Path, tmp_path: Path) -> None:
    role = {"backend": "sequence_classifier", "model": str(tiny_classifier), "sha256": None, "context_tokens": 512}
    settings = scripted_settings(
        languages=["en", "sw"],
        judge={"mode": "margin", "guard": "prompt_guard_2", "variants": ["english", "backtranslate"]},
        roles={"judge": {**role, "options": {"alarm": "MALICIOUS"}}},
    )
    paths = run_stages(settings, results=tmp_path / "results")
    rows = judgements(paths, "english")
    thresholds = {row["variant"]: row["threshold"] for row in json.loads(paths.thresholds.read_bytes())}
    assert {row.verdict for row in rows} == {"BLOCK", "ALLOW"}
    assert all((row.verdict == "BLOCK") == (float(str(row.margin)) > thresholds["english"]) for row in rows)
    marks = judges_of(paths)["off_label"]
    assert (marks["english", "sw"], marks["english", "en"]) == ("language, purpose", "purpose")
    assert "Guard off-label (purpose): all languages (judge english, backtranslate)" in paths.report.read_text("utf-8")


@pytest.mark.torch
def test_a_random_guard_under_transformers_is_unparsed_on_every_trial(tmp_path: Path) -> None:
    from tiny_guards import make_guard  # noqa: PLC0415 - needs PyTorch

    model = str(make_guard(tmp_path / "llama_guard_4", "llama_guard_4"))
    role = {"backend": "transformers", "model": model, "sha256": None, "rendering": "chat", "context_tokens": 4096}
    settings = scripted_settings(
        languages=["en", "sw"],
        judge={"mode": "parse", "guard": "llama_guard_4", "variants": ["english", "retrieved"]},
        roles={"judge": {**role, "options": {"batch_size": 8}}},
    )
    paths = run_stages(settings, results=tmp_path / "results")
    assert {row.verdict for variant in ("english", "retrieved") for row in judgements(paths, variant)} == {"UNPARSED"}
    table = judges_of(paths)
    assert (table["n_unparsed"] == table["n_attack_evaluated"] + table["n_benign_evaluated"]).all()
    assert "CONSTANT judge" in paths.report.read_text(encoding="utf-8")


def test_the_reading_and_the_guards_file_decide_about_reruns(tmp_path: Path) -> None:
    one, other = (
        settings_slice(load_settings({"judge": {"guard": "qwen3guard", "guard_reading": reading}}), "judge")
        for reading in ("strict", "loose")
    )
    assert one != other
    (tmp_path / "guards").mkdir()
    path = tmp_path / "guards" / "mine.yaml"
    digests = {guard_digest(str(tmp_path), "mine")}
    for text in ("name: one", "name: two"):
        path.write_text(text, encoding="utf-8")
        digests.add(guard_digest(str(tmp_path), "mine"))
    assert len(digests) == 3
    assert guard_digest(str(tmp_path), None) == ""
