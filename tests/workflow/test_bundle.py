"""A finished run is bundled, and `verify` finds whatever was changed in it since, or says what it cannot find."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from bundle_tools import Files, changed, drop_row, edit_row, lines_of, mended, read_files, rows_of
from pipeline import REPOSITORY, Pipeline, case_settings, scripted
from typer.testing import CliRunner

from mragaudit.cli import app
from mragaudit.config import Settings
from mragaudit.errors import ArchiveError, ConfigError, DataError
from mragaudit.review.verification import render_verification
from mragaudit.stages import bundle
from mragaudit.stages.manifest import read_manifest
from mragaudit.stages.verify import Verification, verify_bundle

pytestmark = pytest.mark.workflow

RUN = "results/scripted"
SHARD = "1-of-2.jsonl"
GENERATIONS = f"{RUN}/generations/{SHARD}"
TRANSLATIONS = f"{RUN}/translations/{SHARD}"


def _bundle(pipeline: Pipeline) -> Path:
    with chdir(pipeline.folder):
        bundle.run(run_folder=pipeline.run_folder, archive=pipeline.paths.bundle, settings=pipeline.settings)
    return pipeline.files.bundle


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    settings = case_settings(languages=["en", "de"], shards=2, judge={"controls_per_class": 2})
    made = Pipeline(tmp_path_factory.mktemp("bundle"), settings)
    made.run()
    return made


@pytest.fixture(scope="module")
def archive(pipeline: Pipeline) -> Path:
    return _bundle(pipeline)


def _rows_of_stages(archive: Path) -> Verification:
    """Verify without tables, figures and report, which take most of the time."""
    return verify_bundle(archive, stages=("corpus", "filter", "score"))


def _faults(done: Verification) -> str:
    return "\n".join(fault for check in done.checks for fault in check.faults)


def _states(done: Verification) -> dict[str, str]:
    return {check.name: check.state for check in done.checks}


def test_a_bundle_is_verified_by_every_check(archive: Path) -> None:
    done = verify_bundle(archive)
    assert set(_states(done).values()) == {"ok"}, render_verification(done, expected=False)
    assert len(done.checks) == 6 + 7
    assert done.passed


def test_the_same_run_gives_the_same_bytes_and_the_digest_that_was_printed(pipeline: Pipeline, archive: Path) -> None:
    before = archive.read_bytes()
    _bundle(pipeline)
    assert archive.read_bytes() == before
    with chdir(pipeline.folder):
        printed = bundle.run(run_folder=pipeline.run_folder, archive=Path("b.tar.gz"), settings=pipeline.settings)
    assert verify_bundle(archive, stages=()).digest == printed


def test_jobs_of_an_earlier_number_of_shards_are_counted_nowhere(tmp_path: Path) -> None:
    for shards in (2, 3):
        pipeline = Pipeline(tmp_path, case_settings(languages=["en"], shards=shards, judge={"controls_per_class": 2}))
        pipeline.run()
    stages = {one.stage: one for one in read_manifest(pipeline.files.manifest).stages}
    assert stages["translate"].jobs == 3
    assert verify_bundle(_bundle(pipeline), stages=()).passed


def test_no_journal_log_or_place_of_this_machine_is_in_a_bundle(pipeline: Pipeline, archive: Path) -> None:
    files = read_files(archive)
    assert not [name for name in files if "/journal/" in name or "/logs/" in name]
    places = (str(pipeline.folder).encode(), str(REPOSITORY).encode())
    assert not [name for name, content in files.items() if any(place in content for place in places)]


def test_a_tampered_byte_is_named(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        files[f"{RUN}/figures/funnel.svg"] = files[f"{RUN}/figures/funnel.svg"].replace(b"<", b" <", 1)

    done = _rows_of_stages(changed(archive, tmp_path, change))
    assert not done.passed
    assert f"{RUN}/figures/funnel.svg: its bytes are not those that the checksums list" in _faults(done)


@pytest.mark.parametrize("name", ["trials.jsonl", "tables/funnel.csv", f"queries/{SHARD}", "report.html"])
def test_a_missing_file_is_named(name: str, archive: Path, tmp_path: Path) -> None:
    done = _rows_of_stages(mended(archive, tmp_path, lambda files: files.pop(f"{RUN}/{name}") and None))
    assert f"{RUN}/{name}: missing" in _faults(done)
    assert not done.passed


@pytest.mark.parametrize(
    "folder", ["queries", "translations", "retrieval", "judgements/english", "filtered/regex_ascii"]
)
def test_a_missing_row_is_named_although_its_checksum_was_mended(folder: str, archive: Path, tmp_path: Path) -> None:
    name = f"{RUN}/{folder}/{SHARD}"
    row = rows_of(read_files(archive)[name])[0]
    done = verify_bundle(mended(archive, tmp_path, drop_row(name)))
    assert (row.get("trial_id") or row["query_id"]) in _faults(done)
    assert _states(done)["counts"] == "failed"


def test_a_trial_taken_out_of_every_stage_is_named(archive: Path, tmp_path: Path) -> None:
    gone = next(row for row in rows_of(read_files(archive)[TRANSLATIONS]) if row["lang"] == "de")["trial_id"]

    def change(files: Files) -> None:
        for name in [name for name in files if name.endswith(".jsonl") and f"{RUN}/queries" not in name]:
            files[name] = lines_of([row for row in rows_of(files[name]) if row.get("trial_id") != gone])

    faults = _faults(verify_bundle(mended(archive, tmp_path, change)))
    assert f"1 of 52 trials are missing: {gone}" in faults


def _attack(row: Mapping[str, Any]) -> bool:
    return row.get("intent") == "attack" and row.get("lang", "de") == "de"


def _answered(row: Mapping[str, Any]) -> bool:
    return bool(row.get("text"))


def _any(_row: Mapping[str, Any]) -> bool:
    return True


def _flip(row: Mapping[str, Any]) -> str:
    return "ALLOW" if row["verdict"] == "BLOCK" else "BLOCK"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            edit_row(f"{RUN}/corpus/documents.jsonl", _any, text=lambda row: row["text"] + " More."),
            r"corpus/documents.jsonl, line 1: doc_id \w+: text comes out otherwise",
        ),
        (
            edit_row(f"{RUN}/queries/{SHARD}", _any, text=lambda row: row["text"] + " Please."),
            r"translations: trial \S+: its source is not the text of its query",
        ),
        (
            edit_row(TRANSLATIONS, _attack, text="etwas anderes"),
            r"judgements/multilingual: trial \S+: the text that was judged is not the translation's",
        ),
        (
            edit_row(f"{RUN}/backtranslations/{SHARD}", _any, text="something else"),
            r"judgements/backtranslate: trial \S+: the text that was judged is not the back-translation's",
        ),
        (
            edit_row(f"{RUN}/retrieval/{SHARD}", lambda row: row["gold_rank"] == 1, gold_rank=2),
            r"retrieval: trial \S+: its gold rank is 2, its documents say 1",
        ),
        (
            edit_row(f"{RUN}/retrieval/{SHARD}", _any, doc_ids=lambda row: [row["doc_ids"][0], "nobody"]),
            r"generations: trial \S+: its context is not what was retrieved for it",
        ),
        (
            edit_row(GENERATIONS, _answered, text="I do not know."),
            r"(filtered/\w+/1-of-2|trials).jsonl, line \d+: trial_id \S+: .* comes? out otherwise",
        ),
        (
            edit_row(f"{RUN}/judgements/english/{SHARD}", _any, verdict=_flip),
            r"judgements/english: trial \S+: verdict \w+, but margin \S+ and threshold",
        ),
        (
            edit_row(f"{RUN}/judgements/english/{SHARD}", _any, margin=lambda row: row["margin"] + 1),
            r"judgements/english: trial \S+: its margin is not the difference of its log-probabilities",
        ),
        (
            edit_row(f"{RUN}/filtered/regex_ascii/{SHARD}", _any, fired=lambda row: not row["fired"]),
            r"filtered/regex_ascii/1-of-2.jsonl, line 1: trial_id \S+: fired comes out otherwise",
        ),
        (
            edit_row(f"{RUN}/trials.jsonl", _attack, leak_verbatim=lambda row: not row["leak_verbatim"]),
            r"trials.jsonl, line \d+: trial_id \S+: leak_verbatim comes out otherwise",
        ),
        (
            edit_row(f"{RUN}/generations/{SHARD}", _any, trial_id=7),
            r"generations/1-of-2.jsonl, line 1: Expected `str`, got `int`",
        ),
    ],
)
def test_a_row_changed_with_its_checksum_mended_is_found(
    change: Callable[[Files], None], found: str, archive: Path, tmp_path: Path
) -> None:
    done = _rows_of_stages(mended(archive, tmp_path, change))
    assert not done.passed
    assert re.search(found, _faults(done)), _faults(done)
    assert "root digest" not in _states(done)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda rows: rows.replace(b"\n", b"\r\n"), "line 1: its bytes are not those that a stage writes"),
        (
            lambda rows: rows.replace(b'"text":"', b'"text":"another","text":"', 1),
            r"line \d+: its bytes are not those that a stage writes",
        ),
        (
            lambda rows: b"".join(reversed(rows.splitlines(keepends=True))),
            r"line 2: \S+ stands behind \S+; stages write",
        ),
    ],
    ids=["ends of lines", "a field named twice", "another order"],
)
def test_rows_that_no_stage_writes_so_are_found_although_they_read_the_same(
    change: Callable[[bytes], bytes], found: str, archive: Path, tmp_path: Path
) -> None:
    def edit(files: Files) -> None:
        files[GENERATIONS] = change(files[GENERATIONS])

    done = verify_bundle(mended(archive, tmp_path, edit), stages=())
    assert re.search(rf"generations/1-of-2.jsonl, {found}", _faults(done)), _faults(done)


@pytest.mark.parametrize(
    ("edit", "found"),
    [
        (lambda content: content["stages"][2].update(n_expected=99), "its stages are not what the metrics"),
        (lambda content: content["models"].pop("judge"), "its models are not what the metrics"),
        (lambda content: content["files"].pop("trials.jsonl"), "trials.jsonl: the manifest does not list it"),
    ],
    ids=["counts", "models", "files"],
)
def test_a_manifest_that_says_otherwise_than_the_jobs_is_found(
    edit: Callable[[dict[str, Any]], object], found: str, archive: Path, tmp_path: Path
) -> None:
    def change(files: Files) -> None:
        content = json.loads(files[f"{RUN}/manifest.json"])
        edit(content)
        files[f"{RUN}/manifest.json"] = json.dumps(content).encode()

    done = verify_bundle(mended(archive, tmp_path, change), stages=())
    assert _states(done)["manifest"] == "failed"
    assert found in _faults(done)


@pytest.mark.parametrize("name", ["more.html", "generations/3-of-3.jsonl", "judgements/oracle/more/x.json"])
def test_a_file_that_no_stage_of_the_run_writes_is_found(name: str, archive: Path, tmp_path: Path) -> None:
    done = verify_bundle(mended(archive, tmp_path, lambda files: files.update({f"{RUN}/{name}": b"{}\n"})), stages=())
    assert f"{RUN}/{name}: " in _faults(done)


def test_a_changed_threshold_is_found(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        name = f"{RUN}/judgements/thresholds.json"
        files[name] = re.sub(rb'("threshold": )-?[\d.]+', rb"\g<1>99.5", files[name], count=1)

    faults = _faults(_rows_of_stages(mended(archive, tmp_path, change)))
    assert "thresholds.json: english: threshold 99.5 is not what its" in faults


def test_a_changed_cell_of_a_table_is_found(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        name = f"{RUN}/tables/f1_output_only.csv"
        files[name] = files[name].replace(b"template", b"human", 1)

    faults = _faults(verify_bundle(mended(archive, tmp_path, change), stages=("aggregate",)))
    assert re.search(
        r"tables/f1_output_only.csv, line 2: en,.*human stands here, made again it is en,.*template", faults
    )


@pytest.mark.parametrize("name", ["figures/leak_rates.svg", "report.html"])
def test_a_changed_figure_or_report_is_found_where_the_same_code_drew_it(
    name: str, archive: Path, tmp_path: Path
) -> None:
    def change(files: Files) -> None:
        files[f"{RUN}/{name}"] = files[f"{RUN}/{name}"].replace(b"</", b" </", 1)

    assert f"{name}, line " in _faults(verify_bundle(mended(archive, tmp_path, change), stages=("figures", "report")))


def test_a_figure_of_another_matplotlib_is_not_compared_and_named_as_such(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        name = f"{RUN}/figures/leak_rates.svg"
        files[name] = files[name].replace(b"</", b" </", 1)
        files["bundle.json"] = re.sub(rb'("matplotlib": )"[^"]+"', rb'\1"3.0.0"', files["bundle.json"])

    done = verify_bundle(mended(archive, tmp_path, change), stages=("figures",))
    check = next(check for check in done.checks if check.name == "figures again")
    assert check.state == "not compared"
    assert "1 of 5 files come out otherwise (matplotlib is" in check.detail


def test_what_no_later_stage_knows_better_only_the_digest_shows(archive: Path, tmp_path: Path) -> None:
    change = edit_row(GENERATIONS, _any, completion_tokens=1)
    forged = mended(archive, tmp_path, change)
    assert verify_bundle(forged).passed
    done = verify_bundle(forged, expect=verify_bundle(archive, stages=()).digest, stages=())
    assert _states(done)["root digest"] == "failed"
    assert not done.passed


def test_settings_that_are_not_the_manifests_are_named(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        files["config.yaml"] = re.sub(rb"(?m)^seed: \d+", b"seed: 1", files["config.yaml"])

    assert "manifest.json: its settings are not those of config.yaml: seed" in _faults(
        _rows_of_stages(mended(archive, tmp_path, change))
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"run: scripted", b"run: &a scripted\nresources: *a", "aliases, anchors and tags are not read"),
        (b"run: scripted", b"run: !!python/name:os.system scripted", "aliases, anchors and tags are not read"),
        (b"resources: resources", b"resources: /etc", "name a place outside the bundle"),
        (b"source: synthetic", b"source: /etc/passwd", "name a place outside the bundle"),
        (b"personal_data: auto", b"personal_data: real", "real personal data, which is never bundled"),
        (b"seed:", b"seeed:", "unknown; did you mean"),
        (b"shards: 2", b"shards: 2000000000", r'"shards" is 2000000000; at most \d+ is run again'),
        (b"resamples: 200", b"resamples: 2000000000", '"statistics.resamples" is 2000000000; at most 1000000'),
    ],
)
def test_a_config_that_reaches_outside_or_for_too_much_is_refused(
    old: bytes, new: bytes, message: str, archive: Path, tmp_path: Path
) -> None:
    def change(files: Files) -> None:
        assert old in files["config.yaml"]
        files["config.yaml"] = files["config.yaml"].replace(old, new, 1)

    with pytest.raises(ArchiveError, match=message):
        verify_bundle(mended(archive, tmp_path, change))


@pytest.mark.parametrize("name", ["checksums.sha256", "config.yaml", "bundle.json", "README.md"])
def test_an_archive_that_is_no_bundle_is_refused(name: str, archive: Path, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=f"it holds no {name}, so it is no bundle"):
        verify_bundle(changed(archive, tmp_path, lambda files: files.pop(name) and None))


def test_json_nested_without_end_is_refused(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        name = f"{RUN}/manifest.json"
        files[name] = files[name].replace(b'"settings": {', b'"settings": {"x": ' + b"[" * 9000 + b"]" * 9000 + b",", 1)

    with pytest.raises(ArchiveError, match="nested deeper than any of ours"):
        verify_bundle(changed(archive, tmp_path, change), stages=())


def test_rows_that_make_a_stage_fail_are_a_finding_and_no_crash(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        files["resources/prompts/generator/de.yaml"] = b"system: 1\n"

    done = _rows_of_stages(mended(archive, tmp_path, change))
    assert "score: it cannot be run again: DataError: resources/prompts/generator/de.yaml" in _faults(done)


def test_real_personal_data_is_never_bundled(pipeline: Pipeline, tmp_path: Path) -> None:
    settings = case_settings(corpus={"personal_data": "real"})
    with pytest.raises(ConfigError, match="real personal data, which is never bundled"):
        bundle.run(run_folder=pipeline.files.root, archive=tmp_path / "b.tar.gz", settings=settings)
    assert list(tmp_path.iterdir()) == []


def test_a_password_in_the_config_is_never_bundled(pipeline: Pipeline, tmp_path: Path) -> None:
    settings = case_settings(monitor={"store": "redis://:hunter2@db.example.org/0"})
    with pytest.raises(ConfigError, match=r'"monitor.store" is a URL with a password') as caught:
        bundle.run(run_folder=pipeline.files.root, archive=tmp_path / "b.tar.gz", settings=settings)
    assert "hunter2" not in str(caught.value)


def test_a_run_that_changed_after_its_manifest_is_not_bundled(pipeline: Pipeline, tmp_path: Path) -> None:
    table = pipeline.files.table("stops")
    before = table.read_bytes()
    table.write_bytes(before + b"\n")
    try:
        with pytest.raises(DataError, match=r"tables/stops.csv: changed or deleted since the manifest was written"):
            bundle.run(run_folder=pipeline.files.root, archive=tmp_path / "b.tar.gz", settings=pipeline.settings)
    finally:
        table.write_bytes(before)


def test_a_run_with_calls_that_never_came_back_is_bundled_and_verified(tmp_path: Path) -> None:
    roles = {
        # Three anchors, and a control that chooses thresholds.
        "translator": scripted("identity_translator", fail_on="TK-7523-KX"),
        "back_translator": scripted("identity_translator", fail_on="CT-1590-YK"),
        "judge": scripted("lexical", fail_on="LunarOtter"),
        "generator": scripted("echo", fail_on="name of the person recorded under Project Copper Falcon"),
    }
    made = Pipeline(tmp_path, case_settings(languages=["en", "de"], judge={"controls_per_class": 2}, roles=roles))
    made.run()
    done = verify_bundle(_bundle(made))
    assert set(_states(done).values()) == {"ok"}, render_verification(done, expected=False)
    lost = {stage.stage: stage.n_not_evaluated for stage in read_manifest(made.files.manifest).stages}
    assert all(lost[stage] for stage in ("translate", "backtranslate", "calibrate", "judge", "generate"))


def test_an_imported_corpus_of_nobodys_data_travels_with_its_bundle(tmp_path: Path) -> None:
    examples = REPOSITORY / "resources" / "examples"
    settings: Settings = case_settings(
        languages=["en", "zh", "de", "ar", "sw"],
        corpus={"source": str(examples / "corpus.csv"), "personal_data": "synthetic"},
        queries={"source": str(examples / "human_queries.csv"), "benign_per_document": 0},
        judge={"variants": ["english"], "controls_per_class": 2},
        retrieve={"k": 2},
    )
    made = Pipeline(tmp_path, settings)
    made.run()
    archive = _bundle(made)
    assert {"inputs/corpus.csv", "inputs/queries.csv"} <= set(read_files(archive))
    done = verify_bundle(archive)
    assert set(_states(done).values()) == {"ok"}, render_verification(done, expected=False)


def test_the_command_tells_ci_what_happened(archive: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    digest = verify_bundle(archive, stages=()).digest
    fine = runner.invoke(app, ["verify", str(archive), "--expect", digest])
    assert (fine.exit_code, fine.output.splitlines()[-1]) == (0, "verified")
    other = runner.invoke(app, ["verify", str(archive), "--expect", "0" * 64])
    assert (other.exit_code, other.output.splitlines()[-1]) == (3, "NOT VERIFIED: root digest")
    (tmp_path / "none.tar.gz").write_bytes(b"no archive")
    unusable = runner.invoke(app, ["verify", str(tmp_path / "none.tar.gz")])
    assert (unusable.exit_code, "damaged, or no archive of ours" in unusable.output) == (4, True)
    assert runner.invoke(app, ["verify", str(archive), "--expect", "short"]).exit_code == 2


def test_a_bundle_is_unpacked_into_a_new_folder_alone(archive: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["unpack", str(archive), str(tmp_path / "review")]).exit_code == 0
    assert (tmp_path / "review" / RUN / "report.html").is_file()
    again = runner.invoke(app, ["unpack", str(archive), str(tmp_path / "review")])
    assert "stands there already; name a new folder" in str(again.exception)


def test_a_hostile_archive_leaves_no_folder_behind(archive: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["unpack", str(archive), str(tmp_path / "review"), "--max-files", "3"])
    assert result.exit_code == 4
    assert list(tmp_path.iterdir()) == []
