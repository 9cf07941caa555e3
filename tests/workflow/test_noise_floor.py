"""The noise floor of a whole run: models that answer repeats otherwise in a known pattern, and models that do not."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from bundle_tools import Files, drop_row, edit_row, mended
from pipeline import Pipeline, case_settings, scripted

from mragaudit.config import Settings
from mragaudit.paths import RunPaths
from mragaudit.records.base import iter_records
from mragaudit.records.repeats import RepeatPair
from mragaudit.stages import bundle
from mragaudit.stages.aggregate import read_table
from mragaudit.stages.verify import verify_bundle

pytestmark = pytest.mark.workflow

SUMMARY = "ummar"
"""Stands in the attack query of one paraphrase of three, of the same in English and, untranslated, in German."""
OTHERWISE = {"judge": {SUMMARY: "ALLOW"}, "generator": {SUMMARY: "I cannot say."}}
SHARD = "1-of-1.jsonl"


def settings(folder: Path, *, otherwise: dict[str, dict[str, str]] | None = None, **over: Any) -> Settings:
    """Return five documents in English and German: 30 attacks and 10 benign trials, of which 20 are translated."""
    models = {"judge": "lexical", "generator": "echo", "translator": "identity_translator"}
    roles = {
        role: scripted(model, repeat_answers=(otherwise or {}).get(role), count_file=str(folder / f"{role}.calls"))
        for role, model in models.items()
    }
    judge = {"controls_per_class": 2, "variants": ["english", "retrieved"], "mode": "parse"}
    given = {"languages": ["en", "de"], "judge": judge, "noise": {"stages": "all"}, "roles": roles}
    return case_settings(**{**given, **over})


def calls(folder: Path) -> dict[str, int]:
    return {path.stem: len(path.read_bytes().splitlines()) for path in sorted(folder.glob("*.calls"))}


def rates(files: RunPaths, *, lang: str = "all") -> dict[tuple[str, str | None, str], tuple[int, int, int]]:
    """Return (stage, judge variant, what was compared) → pairs, flips, not evaluated."""
    table = read_table(files.table("noise"))
    table = table[table["lang"] == lang]
    variants = table["judge_variant"].astype(object).where(table["judge_variant"].notna(), None)
    keys = zip(table["stage"], variants, table["flip"], strict=True)
    counts = table[["n_pairs", "n_flips", "n_not_evaluated"]].itertuples(index=False, name=None)
    return dict(zip(keys, counts, strict=True))


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    folder = tmp_path_factory.mktemp("noisy")
    pipeline = Pipeline(folder, settings(folder, otherwise=OTHERWISE))
    pipeline.run()
    return pipeline


def test_models_that_answer_summaries_otherwise_flip_on_exactly_these(noisy: Pipeline) -> None:
    """10 of 40 trials are summaries, and every attack leaks at first.

    The judge goes by words of the query and has none for the fifth document's social security number.
    """
    found = rates(noisy.files)
    assert found["generate", None, "text"] == (40, 10, 0)
    assert found["generate", None, "leak_verbatim"] == (30, 10, 0)
    assert found["generate", None, "answered_correctly"] == (10, 0, 0)
    assert found["judge", "english", "verdict"] == (40, 8, 0)
    assert found["judge", "english", "text"] == (40, 8, 0)
    assert found["judge", "retrieved", "verdict"] == (40, 8, 0)
    assert found["translate", None, "text"] == (20, 0, 0)
    assert rates(noisy.files, lang="de")["generate", None, "leak_verbatim"] == (15, 5, 0)


def test_a_model_that_answers_alike_gives_no_flip_of_n_with_its_upper_limit(noisy: Pipeline) -> None:
    table = read_table(noisy.files.table("noise"))
    row = table[(table["stage"] == "backtranslate") & (table["lang"] == "all")].iloc[0]
    assert (row["n_pairs"], row["n_flips"], row["rate"], row["ci_method"]) == (20, 0, 0.0, "wilson_one_sided_upper")
    assert row["ci_high"] == pytest.approx(2.705543 / (20 + 2.705543), abs=1e-6)  # z² / (n + z²)


def test_repeats_are_made_once_more_and_change_no_row_and_no_count_of_a_stage(noisy: Pipeline, tmp_path: Path) -> None:
    """40 trials, of which 20 are translated; their German is English here, so judges are shown equal prompts once."""
    plain = Pipeline(tmp_path, settings(tmp_path, noise={"stages": "none"}))
    plain.run()
    added = {name: calls(noisy.folder)[name] - count for name, count in calls(tmp_path).items()}
    assert added == {"generator": 40, "judge": 20 + 20, "translator": 20}
    for name in ("translations", "generations", "judgements/english"):
        assert (noisy.files.root / name / SHARD).read_bytes() == (plain.files.root / name / SHARD).read_bytes()
    assert noisy.files.trials.read_bytes() == plain.files.trials.read_bytes()
    assert plain.files.noise.read_bytes() == b""
    assert set(rates(plain.files).values()) == {(0, 0, 0)}


def test_the_number_of_shards_changes_no_repeat(tmp_path: Path) -> None:
    made = []
    for shards in (1, 3):
        folder = tmp_path / str(shards)
        folder.mkdir()
        noise = {"stages": "all", "trials": 8}
        pipeline = Pipeline(folder, settings(folder, otherwise=OTHERWISE, noise=noise, shards=shards))
        pipeline.before("figures")
        made.append((pipeline.files.noise.read_bytes(), pipeline.files.table("noise").read_bytes()))
    assert made[0] == made[1]
    attacks = [row for row in iter_records(pipeline.files.noise, RepeatPair) if row.intent == "attack"]
    assert {stage: sum(row.stage == stage for row in attacks) for stage in ("translate", "generate")} == {
        "translate": 8,
        "generate": 8,
    }


def test_a_stage_that_was_killed_among_its_repeats_makes_only_the_rest(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, settings(tmp_path, otherwise=OTHERWISE))
    pipeline.before("score")
    repeats = pipeline.files.root / "repeats" / "generate" / SHARD
    journal = pipeline.files.journal / "generate.1-of-1.jsonl"
    whole, before = repeats.read_bytes(), calls(tmp_path)["generator"]
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-7]))
    repeats.unlink()
    pipeline.job("generate", "1-of-1")
    assert calls(tmp_path)["generator"] - before == 7
    assert repeats.read_bytes() == whole
    pipeline.job("generate", "1-of-1")
    assert calls(tmp_path)["generator"] - before == 7


def test_pairs_of_which_a_call_was_lost_are_counted_apart(tmp_path: Path) -> None:
    """Each of the 10 summaries is lost to the generator for good."""
    lost = scripted("echo", fail_on=SUMMARY)
    lost["attempts"] = 1
    pipeline = Pipeline(tmp_path, settings(tmp_path, roles={"generator": lost}))
    pipeline.before("figures")
    found = rates(pipeline.files)
    assert found["generate", None, "text"] == (40, 0, 10)
    assert found["generate", None, "leak_verbatim"] == (30, 0, 10)
    reasons = {row.not_evaluated for row in iter_records(pipeline.files.noise, RepeatPair)}
    assert reasons == {None, "first call: scripted: connection lost for good"}


def test_a_query_that_was_never_translated_has_no_pair_to_compare(tmp_path: Path) -> None:
    lost = scripted("identity_translator", fail_on=SUMMARY)
    lost["attempts"] = 1
    pipeline = Pipeline(tmp_path, settings(tmp_path, roles={"translator": lost}))
    pipeline.before("figures")
    found = rates(pipeline.files)
    assert found["translate", None, "text"] == (20, 0, 5)
    assert found["backtranslate", None, "text"] == (20, 0, 5)
    assert found["judge", "english", "verdict"] == (40, 0, 5)
    assert found["generate", None, "leak_verbatim"] == (30, 0, 5)


def test_margins_are_compared_beside_verdicts(tmp_path: Path) -> None:
    """A margin falls from 2 to -2 nats; no text is compared where none is written."""
    judge = {"controls_per_class": 2, "variants": ["english"], "mode": "margin"}
    pipeline = Pipeline(tmp_path, settings(tmp_path, otherwise=OTHERWISE, judge=judge))
    pipeline.before("figures")
    assert ("judge", "english", "text") not in rates(pipeline.files)
    table = read_table(pipeline.files.table("noise"))
    row = table[(table["stage"] == "judge") & (table["lang"] == "all")].iloc[0]
    assert (row["flip"], row["max_margin_difference"], row["n_margins"]) == ("verdict", 4.0, 40)


@pytest.fixture(scope="module")
def archive(noisy: Pipeline) -> Path:
    with chdir(noisy.folder):
        bundle.run(run_folder=noisy.run_folder, archive=noisy.paths.bundle, settings=noisy.settings)
    return noisy.files.bundle


def test_a_bundle_with_repeats_is_verified(archive: Path) -> None:
    done = verify_bundle(archive, stages=("score", "aggregate", "report"))
    assert {check.state for check in done.checks} == {"ok"}


RUN = "results/scripted"


def _flip(files: Files) -> None:
    files[f"{RUN}/noise.jsonl"] = files[f"{RUN}/noise.jsonl"].replace(b'"text":true', b'"text":false', 1)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (drop_row(f"{RUN}/repeats/generate/{SHARD}"), f"{RUN}/repeats/generate: 1 of 40 trials are missing"),
        (drop_row(f"{RUN}/repeats/judge/{SHARD}"), f"{RUN}/repeats/judge: 1 of 40 trials are missing"),
        (
            edit_row(f"{RUN}/repeats/generate/{SHARD}", lambda row: row["text"] != "I cannot say.", text="Otherwise."),
            "noise.jsonl, line ",
        ),
        (
            edit_row(f"{RUN}/repeats/judge/{SHARD}", lambda row: row["verdict"] == "BLOCK", verdict="ALLOW"),
            "its verdict is not what its reply says",
        ),
        (
            edit_row(f"{RUN}/repeats/translate/{SHARD}", lambda _row: True, text="etwas anderes"),
            "noise.jsonl, line ",
        ),
        (
            edit_row(f"{RUN}/repeats/translate/{SHARD}", lambda row: row["lang"] == "de", lang="en"),
            "its language, or whether it is translated, is not that of the first call",
        ),
        (
            edit_row(
                f"{RUN}/repeats/translate/{SHARD}",
                lambda row: (row["lang"], row["paraphrase"]) == ("de", "direct"),
                failed=lambda row: None if row["failed"] else "unchanged",
            ),
            "its text is that of the first call, and what is said of it is not",
        ),
        (_flip, "noise.jsonl, line "),
    ],
)
def test_a_changed_repeat_is_found(change: Any, found: str, archive: Path, tmp_path: Path) -> None:
    done = verify_bundle(mended(archive, tmp_path, change), stages=("score",))
    assert found in "\n".join(fault for check in done.checks for fault in check.faults)
