"""A finished grid is bundled, and `verify` finds whatever was changed in it since."""

from __future__ import annotations

import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import yaml
from bundle_tools import Files, changed, drop_row, edit_row, mended, read_files
from grid_runs import grid_settings, run_grid

from mragaudit.bundle.kinds import HOOK_AUDIT
from mragaudit.config import Settings
from mragaudit.errors import ArchiveError, ConfigError, DataError
from mragaudit.paths import RunPaths
from mragaudit.records.base import iter_records
from mragaudit.records.grid import CellUse, GridDocument
from mragaudit.resources import REPOSITORY
from mragaudit.review.verification import render_verification
from mragaudit.stages import bundle
from mragaudit.stages.compare import open_side
from mragaudit.stages.verify import Verification, verify_bundle

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

GRID = "results/small/hook_audit"
QUICK = ("grid_plan", "grid_documents", "grid_scores")
"""Stages that are run again in a second."""


def _bundle(folder: Path, settings: Settings) -> Path:
    grid = RunPaths(Path(GRID))
    with chdir(folder):
        bundle.run(run_folder=grid.root, archive=grid.bundle, settings=settings, kind=HOOK_AUDIT)
    return folder / grid.bundle


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("grid")
    run_grid(made, grid_settings())
    return made


@pytest.fixture(scope="module")
def archive(folder: Path) -> Path:
    return _bundle(folder, grid_settings())


def _faults(done: Verification) -> str:
    return "\n".join(fault for check in done.checks for fault in check.faults)


def _states(done: Verification) -> dict[str, str]:
    return {check.name: check.state for check in done.checks}


def _shard_with_calls(archive: Path) -> str:
    """Return the calls of the shard that holds those of the undefended prompt pool."""
    files = read_files(archive)
    names = [f"{GRID}/calls/{number}-of-2.jsonl" for number in (1, 2)]
    return next(name for name in names if b'"cell_id":"grid.email.s1.targeted_queries.none.ps"' in files[name])


def test_every_stage_without_a_model_comes_out_again_byte_by_byte(archive: Path) -> None:
    done = verify_bundle(archive)
    assert set(_states(done).values()) == {"ok"}, render_verification(done, expected=False)
    assert len(done.checks) == 5 + 1 + 6
    assert done.passed
    assert render_verification(done, expected=False).startswith("bundle of the hook audit of run small, made with")


def test_a_grid_of_which_calls_were_lost_comes_out_again_and_its_counts_agree(folder: Path, tmp_path: Path) -> None:
    documents = iter_records(folder / GRID / "documents.jsonl", GridDocument)
    title = next(one.title for one in documents if one.realisation == "email.s1" and one.split == "indexed")
    settings = grid_settings(roles={"generator": {"attempts": 1, "options": {"fail_on": title}}})
    grid = run_grid(tmp_path, settings)
    uses = [use for shard in grid.shards("uses", settings.shard_names) for use in iter_records(shard, CellUse)]
    assert max(use.n_not_evaluated for use in uses) > 1
    done = verify_bundle(_bundle(tmp_path, settings), stages=())
    assert done.passed, _faults(done)


def test_the_same_grid_gives_the_same_bytes(folder: Path, archive: Path) -> None:
    before = archive.read_bytes()
    assert _bundle(folder, grid_settings()).read_bytes() == before


def test_no_journal_log_or_place_of_this_machine_is_in_the_bundle(folder: Path, archive: Path) -> None:
    files = read_files(archive)
    assert not [name for name in files if "/journal/" in name or "/logs/" in name]
    places = (str(folder).encode(), str(REPOSITORY).encode())
    assert not [name for name, content in files.items() if any(place in content for place in places)]


def test_a_tampered_byte_is_named(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        files[f"{GRID}/tables/leaks.csv"] = files[f"{GRID}/tables/leaks.csv"].replace(b",", b";", 1)

    done = verify_bundle(changed(archive, tmp_path, change), stages=())
    assert f"{GRID}/tables/leaks.csv: its bytes are not those that the checksums list" in _faults(done)
    assert not done.passed


@pytest.mark.parametrize("name", ["hooks.json", "calls/1-of-2.jsonl"])
def test_a_missing_file_is_named(name: str, archive: Path, tmp_path: Path) -> None:
    done = verify_bundle(mended(archive, tmp_path, lambda files: files.pop(f"{GRID}/{name}") and None), stages=QUICK)
    assert f"{GRID}/{name}: missing" in _faults(done)
    assert _states(done)["grid_scores"] == "not run"


def test_a_call_taken_out_is_named_although_its_checksum_was_mended(archive: Path, tmp_path: Path) -> None:
    name = _shard_with_calls(archive)
    done = verify_bundle(mended(archive, tmp_path, drop_row(name)), stages=())
    assert _states(done)["counts"] == "failed"
    assert "calls; call 1 is missing" in _faults(done)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("documents.jsonl", "the config asks for"),
        ("splits.jsonl", "splits: email.s1 is missing"),
        ("cells.jsonl", "stands here and is not in the plan"),
        ("uses/1-of-2.jsonl", "is missing"),
        ("scores/items.jsonl", "scores/items.jsonl, line 1"),
    ],
)
def test_a_missing_row_is_named_although_its_checksum_was_mended(
    name: str, message: str, archive: Path, tmp_path: Path
) -> None:
    stages = ("grid_scores",) if name.startswith("scores") else ()
    done = verify_bundle(mended(archive, tmp_path, drop_row(f"{GRID}/{name}")), stages=stages)
    assert message in _faults(done)
    assert not done.passed


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"reply": "nothing"}, "no defense was there, and the reply is not what the model wrote"),
        (
            {"reply": "nothing", "answer": "nothing"},
            "uses: replies_digest of cell grid.email.s1.targeted_queries.none.ps",
        ),
        ({"context": lambda row: ["x" for _ in row["context"]]}, "its context is not the text of its documents"),
        ({"doc_ids": lambda row: [row["doc_ids"][0]] * len(row["doc_ids"])}, "it retrieved a document twice"),
    ],
)
def test_a_call_that_contradicts_what_stands_beside_it_is_named(
    fields: dict[str, Any], message: str, archive: Path, tmp_path: Path
) -> None:
    cell = "grid.email.s1.targeted_queries.none.ps"
    edit = edit_row(_shard_with_calls(archive), lambda row: row["cell_id"] == cell and row["doc_ids"], **fields)
    done = verify_bundle(mended(archive, tmp_path, edit), stages=())
    assert _states(done)["consistency"] == "failed"
    assert message in _faults(done)


@pytest.mark.parametrize(
    ("stage", "name", "edit"),
    [
        ("grid_scores", "scores/items.jsonl", {"exact": lambda row: not row["exact"]}),
        ("grid_plan", "cells.jsonl", {"budget": lambda row: row["budget"] + 400}),
        ("grid_documents", "splits.jsonl", {"n_folds": lambda row: row["n_folds"] + 1}),
    ],
)
def test_a_changed_row_comes_out_otherwise_when_its_stage_is_run_again(
    stage: str, name: str, edit: dict[str, Any], archive: Path, tmp_path: Path
) -> None:
    change = edit_row(f"{GRID}/{name}", lambda _: True, **edit)
    done = verify_bundle(mended(archive, tmp_path, change), stages=(stage,))
    assert _states(done)[f"{stage} again"] == "failed"
    assert f"{next(iter(edit))} comes out otherwise" in _faults(done)


def test_a_changed_table_comes_out_otherwise(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        name = f"{GRID}/tables/controls.csv"
        files[name] = files[name].replace(b"1", b"2", 1)

    done = verify_bundle(mended(archive, tmp_path, change), stages=("grid_tables",))
    assert "tables/controls.csv, line" in _faults(done)


def test_a_row_of_another_schema_is_named(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        files[f"{GRID}/uses/1-of-2.jsonl"] = files[f"{GRID}/cells.jsonl"]

    done = verify_bundle(mended(archive, tmp_path, change), stages=QUICK)
    assert "uses/1-of-2.jsonl, line 1" in _faults(done)
    assert _states(done)["rows"] == "failed"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("hook_audit.pubmedqa", "/etc/passwd", "resources or hook_audit.pubmedqa name a place outside the bundle"),
        ("hook_audit.seeds", list(range(20_000)), "at most 200000 is run again"),
        ("hook_audit.indexed", 10_000_000, "at most 200000 is run again"),
        ("hook_audit.max_words", 10_000_000, "at most 20000 is run again"),
        ("statistics.resamples", 10**9, "at most 1000000 is run again"),
    ],
)
def test_a_config_that_leads_elsewhere_or_asks_for_too_much_is_refused(
    key: str, value: object, message: str, archive: Path, tmp_path: Path
) -> None:
    def change(files: Files) -> None:
        config = yaml.safe_load(files["config.yaml"])
        section, name = key.split(".")
        config[section][name] = value
        files["config.yaml"] = yaml.safe_dump(config).encode()

    with pytest.raises(ArchiveError, match=message):
        verify_bundle(mended(archive, tmp_path, change), stages=())


@pytest.mark.parametrize(
    "text",
    [
        b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 10)),
        b"a: &a [*a]\n",
    ],
    ids=["bomb", "circle"],
)
def test_resources_whose_aliases_stand_for_too_much_are_refused(text: bytes, archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        files["resources/hook_audit/corpora/email.yaml"] = text

    with pytest.raises(ArchiveError, match=r"corpora/email.yaml: its aliases stand for more than 200000 values"):
        verify_bundle(mended(archive, tmp_path, change), stages=())


def test_another_schema_is_refused_with_the_ones_that_are_read(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        files["bundle.json"] = files["bundle.json"].replace(b"hook_audit_bundle/1", b"hook_audit_bundle/9")

    with pytest.raises(ArchiveError, match=r'this version reads "bundle/1" and "hook_audit_bundle/1"'):
        verify_bundle(mended(archive, tmp_path, change), stages=())


def test_hooks_are_not_compared_where_other_code_made_them(archive: Path, tmp_path: Path) -> None:
    def change(files: Files) -> None:
        text = files["bundle.json"].decode()
        digest = bundle.code_digest("grid_hooks")
        files["bundle.json"] = text.replace(digest, "0" * len(digest)).encode()
        files[f"{GRID}/hooks.json"] = files[f"{GRID}/hooks.json"].replace(b'"not_probed": ""', b'"not_probed": "x"')

    done = verify_bundle(mended(archive, tmp_path, change), stages=("grid_hooks",))
    assert _states(done)["grid_hooks again"] == "not compared"
    assert done.passed


def test_a_grid_that_changed_since_its_manifest_is_not_bundled(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "results", tmp_path / "results")
    (tmp_path / GRID / "tables" / "leaks.csv").write_text("changed\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"leaks.csv: changed or deleted since the manifest"):
        _bundle(tmp_path, grid_settings())


def test_a_password_in_a_url_of_the_config_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r'"monitor.store" is a URL with a password'):
        _bundle(folder, grid_settings(monitor={"store": "redis://me:secret@127.0.0.1:1"}))


def test_a_corpus_of_real_data_for_the_audit_does_not_hinder_the_grid_which_never_reads_it(
    folder: Path, archive: Path
) -> None:
    before = read_files(archive)
    made = read_files(_bundle(folder, grid_settings(corpus={"source": "/home/somebody/customers.csv"})))
    assert made == before


def test_a_grid_is_not_compared_with_an_audit(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the bundle of a hook audit; only those of the staged audit can be compared"):
        open_side(archive, tmp_path)
