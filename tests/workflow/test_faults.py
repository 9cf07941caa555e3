"""Bad input and lost calls: a clear error that names the place, and nothing is lost or counted wrongly."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pipeline import Pipeline, case_settings, scripted

from mragaudit.config import Settings
from mragaudit.records.base import iter_records, read_records
from mragaudit.records.queries import Query, query_key
from mragaudit.records.trials import Trial
from mragaudit.stages.aggregate import read_table

pytestmark = pytest.mark.workflow

SHARD = "1-of-1"


def _settings(**over: object) -> Settings:
    return case_settings(languages=["en", "de"], judge={"controls_per_class": 2, "variants": ["english"]}, **over)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    Pipeline(folder, _settings()).before("aggregate")
    return folder


@pytest.fixture
def broken(finished: Path, tmp_path: Path) -> Callable[..., str]:
    """Return a function that changes a file's lines, runs a stage and returns the error in its log."""

    def run(name: str, change: Callable[[list[bytes]], list[bytes]], *, stage: str) -> str:
        shutil.copytree(finished / "results", tmp_path / "results")
        pipeline = Pipeline(tmp_path, _settings())
        path = pipeline.files.root / name
        path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
        with pytest.raises(SystemExit) as stopped:
            pipeline.job(stage, SHARD)
        assert stopped.value.code == 1
        log = pipeline.log(stage if stage == "score" else f"{stage}.{SHARD}")
        assert "Traceback" not in log
        (line,) = [line for line in log.splitlines() if " ERROR " in line]
        return line.partition(" ERROR ")[2]

    return run


def test_a_truncated_stage_file_is_named_with_its_line(broken: Callable[..., str]) -> None:
    error = broken("generations/1-of-1.jsonl", lambda lines: [*lines[:6], lines[6][:30]], stage="score")
    assert error == (
        "results/scripted/generations/1-of-1.jsonl, line 7: the file ends inside a line; "
        "it was truncated or is half written"
    )


def test_a_hand_edited_verdict_is_named_with_file_and_line(broken: Callable[..., str]) -> None:
    def edit(lines: list[bytes]) -> list[bytes]:
        lines[2] = lines[2].replace(b'"verdict":"ALLOW"', b'"verdict":"MAYBE"')
        assert b"MAYBE" in lines[2]
        return lines

    error = broken("judgements/english/1-of-1.jsonl", edit, stage="score")
    assert error.startswith("results/scripted/judgements/english/1-of-1.jsonl, line 3: ")
    assert "MAYBE" in error


def test_a_removed_row_stops_the_run_with_its_trial(broken: Callable[..., str]) -> None:
    removed: list[str] = []

    def drop(lines: list[bytes]) -> list[bytes]:
        removed.append(json.loads(lines[4])["trial_id"])
        return lines[:4] + lines[5:]

    error = broken("generations/1-of-1.jsonl", drop, stage="score")
    assert error.startswith(f"results/scripted/generations: 1 of 40 trials are missing: {removed[0]};")


def test_a_doubled_row_is_named_with_both_lines(broken: Callable[..., str]) -> None:
    error = broken("retrieval/1-of-1.jsonl", lambda lines: [*lines[:3], lines[2], *lines[3:]], stage="generate")
    assert error.startswith("results/scripted/retrieval/1-of-1.jsonl, line 4: ")
    assert error.endswith("stands already at line 3; ids are unique")


def test_a_row_lost_before_a_model_stage_stops_it_before_any_call(broken: Callable[..., str]) -> None:
    error = broken("backtranslations/1-of-1.jsonl", lambda lines: lines[1:], stage="judge")
    assert error.startswith("results/scripted/backtranslations/1-of-1.jsonl: 1 of 24 trials are missing: ")


def test_a_results_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file where a folder should be refuses even root, whom permissions do not stop."""
    pipeline = Pipeline(tmp_path, _settings())
    pipeline.job("corpus")
    (pipeline.files.root / "queries").write_text("in the way")
    with pytest.raises(SystemExit) as stopped:
        pipeline.job("queries")
    assert stopped.value.code == 1
    log = pipeline.log("queries")
    assert "results/scripted/queries/1-of-1.jsonl: cannot be written" in log
    assert "Traceback" not in log


def _direct_query(pipeline: Pipeline) -> str:
    pipeline.before("translate")
    rows = read_records(pipeline.files.root / "queries" / "1-of-1.jsonl", Query, key=query_key)
    return next(row.text for row in rows if row.paraphrase == "direct")


def _trials(pipeline: Pipeline) -> list[Trial]:
    return list(iter_records(pipeline.files.trials, Trial))


def test_calls_lost_for_good_are_neither_leak_nor_non_leak_and_filled_by_the_same_command(tmp_path: Path) -> None:
    direct = {"paraphrases": ["direct"]}
    query = _direct_query(Pipeline(tmp_path, _settings(queries=direct)))
    faulty = scripted("echo", fail_on=f": {query}\n")
    Pipeline(tmp_path, _settings(queries=direct, roles={"generator": faulty})).before("figures")
    pipeline = Pipeline(tmp_path, _settings(queries=direct))
    lost = [trial for trial in _trials(pipeline) if trial.not_evaluated is not None]
    assert [(trial.lang, trial.not_evaluated) for trial in lost] == [
        ("de", "scripted: connection lost for good"),
        ("en", "scripted: connection lost for good"),
    ]
    assert {leak for trial in lost for leak in trial.output_only_leak.values()} == {None}
    assert {trial.leak_verbatim for trial in lost} == {None}
    assert {fired for trial in lost for fired in trial.fired.values()} == {None}
    assert _headline(pipeline) == [[5, 4, 1, 1.0], [5, 4, 1, 1.0]]
    counted = tmp_path / "generator.calls"
    mended = scripted("echo", count_file=str(counted))
    Pipeline(tmp_path, _settings(queries=direct, roles={"generator": mended})).before("figures")
    assert len(counted.read_bytes().splitlines()) == 2
    assert _headline(pipeline) == [[5, 5, 0, 1.0], [5, 5, 0, 1.0]]


def _headline(pipeline: Pipeline) -> list[list[float]]:
    """Return documents, leaked, not evaluated and rate without a filter, German and English."""
    table = read_table(pipeline.files.table("f1_output_only"))
    rows = table[(table["pii_group"] == "all") & (table["filter_variant"] == "none")].sort_values("lang")
    found: list[list[float]] = rows[["n_documents", "n_leaked", "n_not_evaluated", "rate"]].to_numpy().tolist()
    return found


def test_a_call_lost_once_is_tried_again_and_evaluated(tmp_path: Path) -> None:
    pipeline = Pipeline(tmp_path, _settings(roles={"generator": scripted("echo", fail_first=3)}))
    pipeline.before("aggregate")
    assert [trial.trial_id for trial in _trials(pipeline) if trial.not_evaluated is not None] == []


def test_a_lost_judge_call_leaves_only_its_own_outcome_open(tmp_path: Path) -> None:
    query = _direct_query(Pipeline(tmp_path, _settings()))
    pipeline = Pipeline(tmp_path, _settings(roles={"judge": scripted("lexical", fail_on=query)}))
    pipeline.before("aggregate")
    lost = [trial for trial in _trials(pipeline) if trial.verdict["english"] is None]
    assert [trial.lang for trial in lost] == ["de", "en"]
    assert [trial.output_only_leak["none"] for trial in lost] == [True, True]
    assert [trial.combined_leak["english"]["none"] for trial in lost] == [None, None]


def test_a_lost_translation_is_asked_nowhere_later(tmp_path: Path) -> None:
    query = _direct_query(Pipeline(tmp_path, _settings()))
    pipeline = Pipeline(tmp_path, _settings(roles={"translator": scripted("identity_translator", fail_on=query)}))
    pipeline.before("aggregate")
    (lost,) = [trial for trial in _trials(pipeline) if trial.not_evaluated is not None]
    assert (lost.lang, lost.never_asked, lost.gold_rank, lost.verdict) == ("de", True, None, {"english": None})
    assert set(lost.output_only_leak.values()) == {None}
