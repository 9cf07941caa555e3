from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from mragaudit.errors import BackendError, ConfigError
from mragaudit.llm.checkpoints import checkpoint_identity, find_checkpoint
from mragaudit.registry import locate

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {"config.json": b"{}", "model.safetensors": b"weights", "tokenizer.json": b"[]"}


def make_checkpoint(folder: Path, *, files: dict[str, bytes] | None = None) -> Path:
    folder.mkdir(parents=True)
    for name, content in (FILES if files is None else files).items():
        (folder / name).write_bytes(content)
    return folder


def make_hub_snapshot(cache: Path, *, reference: str) -> Path:
    repository = cache / "models--org--some-model"
    (repository / "refs" / reference).parent.mkdir(parents=True)
    (repository / "refs" / reference).write_text(COMMIT, encoding="utf-8")
    return make_checkpoint(repository / "snapshots" / COMMIT)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def find(model: str | Path, *, revision: str | None = None, sha256: str | None = None) -> str:
    return find_checkpoint(str(model), revision=revision, sha256=sha256).sha256


def test_the_hash_is_over_the_names_and_hashes_of_weights_configuration_and_tokenizer(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "mine")
    (folder / "README.md").write_text("not part of it", encoding="utf-8")
    (folder / "consolidated.safetensors").write_bytes(b"a second copy that is not loaded")
    lines = [f"{name} {hashlib.sha256(FILES[name]).hexdigest()}" for name in sorted(FILES)]

    assert find(folder) == hashlib.sha256("\n".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_change_in_any_file_that_decides_answers_changes_the_hash(tmp_path: Path, name: str) -> None:
    before = find(make_checkpoint(tmp_path / "one"))
    changed = make_checkpoint(tmp_path / "two", files={**FILES, name: b"other"})

    assert find(changed) != before


def test_another_hash_than_the_pinned_one_is_an_error_that_names_both(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "mine")

    with pytest.raises(BackendError, match=f"sha256 {find(folder)}, but the config pins {'0' * 64}"):
        find(folder, sha256="0" * 64)


def test_a_hub_id_is_found_in_the_cache_by_branch_and_by_commit(cache: Path) -> None:
    folder = make_hub_snapshot(cache, reference="main")

    found = find_checkpoint("org/some-model", revision=None, sha256=None)
    assert (found.folder, found.name) == (folder, "org/some-model")
    assert find("org/some-model", revision=COMMIT) == found.sha256


def test_a_revision_with_slashes_is_found(cache: Path) -> None:
    folder = make_hub_snapshot(cache, reference="refs/pr/45")

    assert find_checkpoint("org/some-model", revision="refs/pr/45", sha256=None).folder == folder


def test_a_hub_id_that_is_not_on_the_machine_tells_both_folders_and_the_command(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    with pytest.raises(ConfigError) as caught:
        find("org/some-model")
    assert str(tmp_path / "org/some-model") in str(caught.value)
    assert str(cache / "models--org--some-model") in str(caught.value)
    assert "hf download org/some-model --revision main" in str(caught.value)


def test_a_revision_cannot_lead_out_of_the_cache(cache: Path, tmp_path: Path) -> None:
    make_hub_snapshot(cache, reference="main")
    make_checkpoint(tmp_path / "elsewhere")

    with pytest.raises(ConfigError, match="cache has no snapshot"):
        find("org/some-model", revision="../../../elsewhere")


def test_a_path_that_is_not_there_is_told_in_full(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f'no folder "{tmp_path}/none/such/model"'):
        find(tmp_path / "none/such/model")


def test_a_revision_of_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder and has no revision"):
        find(make_checkpoint(tmp_path / "mine"), revision="main")


def test_pickled_weights_are_named_and_refused(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "mine", files={"config.json": b"{}", "pytorch_model.bin": b"pickle"})

    with pytest.raises(ConfigError, match=r"only pytorch_model\.bin, which could run code"):
        find(folder)


@pytest.mark.parametrize(
    ("missing", "said"), [("model.safetensors", "no weights at all"), ("config.json", "no config")]
)
def test_a_folder_that_is_no_checkpoint_tells_what_it_lacks(tmp_path: Path, missing: str, said: str) -> None:
    folder = make_checkpoint(tmp_path / "mine", files={name: b"" for name in FILES if name != missing})

    with pytest.raises(ConfigError, match=said):
        find(folder)


def test_a_pinned_model_is_known_without_its_folder() -> None:
    identity = checkpoint_identity(
        backend="transformers", model="org/gone", rendering="chat", sha256="A" * 64, revision=None, dtype="auto"
    )

    assert (identity.model, identity.revision) == ("org/gone", "a" * 64)


@pytest.mark.parametrize(
    ("options", "ending"),
    [({}, ""), ({"dtype": "bfloat16"}, " bfloat16"), ({"dtype": "float16", "quantisation": "nf4"}, " float16 nf4")],
)
def test_another_precision_is_another_identity(options: dict[str, str], ending: str) -> None:
    identity = locate("llm", "transformers").identify(model="org/gone", sha256="a" * 64, **options)

    assert identity.revision == "a" * 64 + ending


def test_a_relative_path_gives_the_folders_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make_checkpoint(tmp_path / "mine"))

    assert find_checkpoint(".", revision=None, sha256=None).name == "mine"
