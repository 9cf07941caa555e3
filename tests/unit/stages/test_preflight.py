"""What is wrong before the first job is said before the first job."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mragaudit.config import load_settings
from mragaudit.errors import ConfigError, DataError, StorageError
from mragaudit.stages.preflight import check_run

EXAMPLE = Path(__file__).parents[3] / "resources" / "examples" / "corpus.jsonl"


def _check(folder: Path, **config: Any) -> bool:
    check_run(load_settings(config), results=folder / "results")
    return (folder / "results").is_dir()  # made where a run may start


def test_the_default_run_may_start(tmp_path: Path) -> None:
    _check(tmp_path)
    assert list((tmp_path / "results" / "quick").iterdir()) == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"corpus": {"source": "no.csv"}}, 'config key "corpus.source" is "no.csv": no such file'),
        ({"queries": {"source": "no.csv"}}, 'config key "queries.source" is "no.csv": no such file'),
        ({"resources": "nowhere"}, 'config key "resources" is "nowhere": no such folder'),
        ({"languages": ["en", "fr"]}, "fr.yaml: "),
    ],
)
def test_what_is_missing_is_named(config: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _check(tmp_path, **config)
    assert message in str(caught.value)
    assert not (tmp_path / "results").exists()


def test_an_imported_corpus_without_documents_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(DataError, match=r"empty\.jsonl"):
        _check(tmp_path, corpus={"source": str(tmp_path / "empty.jsonl")})


def test_more_documents_to_retrieve_than_were_imported_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'config key "retrieve\.k" is 500 and the corpus has'):
        _check(tmp_path, corpus={"source": str(EXAMPLE)}, retrieve={"k": 500})


def test_real_data_may_not_leave_for_a_remote_host_unless_allowed(tmp_path: Path) -> None:
    remote = {"generator": {"backend": "scripted", "model": "echo", "options": {"base_url": "http://far.example/v1"}}}
    config: dict[str, Any] = {"corpus": {"source": str(EXAMPLE), "personal_data": "real"}, "roles": remote}
    with pytest.raises(ConfigError) as caught:
        _check(tmp_path, **config)
    assert "would send real personal data to far.example" in str(caught.value)
    _check(tmp_path, **config, allow_remote=True)


def test_a_results_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file where a folder should be")
    with pytest.raises(StorageError, match="results/quick: results cannot be written here"):
        _check(tmp_path)


NLLB: dict[str, Any] = {"backend": "nllb", "model": "facebook/nllb-200-distilled-600M", "sha256": None}


@pytest.mark.parametrize("role", ["judge", "generator"])
def test_a_model_that_can_only_translate_is_refused_for_other_roles(role: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _check(tmp_path, roles={role: NLLB})
    assert f'config key "roles.{role}.backend" is "nllb", which can only translate' in str(caught.value)
    assert "it fits translator and back_translator" in str(caught.value)


def test_a_translation_model_that_is_not_on_this_machine_stops_no_dry_run(tmp_path: Path) -> None:
    assert _check(tmp_path, roles={"translator": NLLB, "back_translator": NLLB})


def test_a_language_without_a_code_is_named_before_a_translation_model_is_loaded(tmp_path: Path) -> None:
    resources = tmp_path / "resources"
    repository = Path(__file__).parents[3]
    shutil.copytree(repository / "resources", resources)
    shutil.copytree(repository / "tests/cases/french", resources, dirs_exist_ok=True)
    config: dict[str, Any] = {"languages": ["en", "fr"], "resources": str(resources)}
    _check(tmp_path, **config)
    with pytest.raises(
        ConfigError, match=r'fr\.yaml: "flores" is missing; nllb knows a language by its FLORES-200 code'
    ):
        _check(tmp_path, **config, roles={"translator": NLLB})


def test_an_address_without_its_scheme_is_no_remote_host_but_a_wrong_option(tmp_path: Path) -> None:
    judge = {"backend": "openai_http", "model": "m", "sha256": None, "options": {"base_url": "127.0.0.1:8000/v1"}}
    with pytest.raises(ConfigError, match="base_url does not begin with http:// or https:// and a host"):
        _check(tmp_path, corpus={"source": str(EXAMPLE)}, roles={"judge": judge})
