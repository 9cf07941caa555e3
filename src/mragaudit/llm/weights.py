"""Files of weights: assembled from packages into our own cache folder, and held against their pinned hash."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mragaudit.errors import BackendError, ConfigError, StorageError
from mragaudit.records.base import write_bytes
from mragaudit.registry import import_package

PACKAGE_PREFIX = "package:"
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """A file of weights whose hash is known."""

    path: Path
    name: str
    """Package or file name, the same on every machine."""
    sha256: str


class _Stamp(msgspec.Struct, frozen=True):
    """Hash of a file as it was when it had this size and this time of change."""

    sha256: str
    size_bytes: int
    modified_ns: int


def default_cache_folder() -> Path:
    """Return `$XDG_CACHE_HOME/mragaudit`, by default `~/.cache/mragaudit`; it need not exist."""
    root = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(root) if root else Path.home() / ".cache") / "mragaudit"


def weights_name(model: str) -> str:
    """Return the package's or file's name, the same on every machine."""
    return model.removeprefix(PACKAGE_PREFIX) if model.startswith(PACKAGE_PREFIX) else Path(model).name


def find_weights(model: str, *, sha256: str | None, cache_folder: Path) -> Weights:
    """Return the file of `package:NAME` or of a path, assembled if need be, with its hash.

    A hash once computed is kept in the cache folder and trusted while the file keeps size and time of change.
    Raises ConfigError for a file that is not there, MissingPackageError for a package that is not,
    BackendError, naming both hashes, where the hash differs from `sha256`, StorageError for a full disk.
    """
    if model.startswith(PACKAGE_PREFIX):
        name = model.removeprefix(PACKAGE_PREFIX)
        path = _assembled(name, cache_folder=cache_folder)
    else:
        path = Path(model)
        name = path.name
        if not path.is_file():
            raise ConfigError(f'model: there is no file "{model}"; give {PACKAGE_PREFIX}NAME or the path of a .gguf')
    actual = file_hash(path, cache_folder=cache_folder)
    if sha256 is not None and actual != sha256.lower():
        raise BackendError(
            f"model {name}: {path} has sha256 {actual}, but the config pins {sha256.lower()}; "
            "delete a damaged file and put the right one there (a packaged model is assembled again by itself)"
        )
    return Weights(path=path, name=name, sha256=actual)


def _assembled(name: str, *, cache_folder: Path) -> Path:
    package = import_package(name.replace("-", "_"), extra="embedded")
    try:
        chunks, file_name = package.chunk_paths(), package.MODEL_NAME
    except AttributeError as error:
        raise ConfigError(f'model: the package "{name}" holds no weights in parts that we can assemble') from error
    target = cache_folder / str(file_name)
    if not target.is_file() or target.stat().st_size != sum(chunk.stat().st_size for chunk in chunks):
        _assemble(chunks, target=target, cache_folder=cache_folder)
    return target


def _assemble(chunks: list[Path], *, target: Path, cache_folder: Path) -> None:
    # Two processes may come here at once: each writes a name of its own, and the last rename wins with equal bytes.
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    digest = hashlib.sha256()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as handle:
            for block in (block for chunk in chunks for block in _blocks(chunk)):
                digest.update(block)
                handle.write(block)
            handle.flush()
            os.fsync(handle.fileno())
        _write_stamp(temporary, digest.hexdigest(), stamp=_stamp_path(target, cache_folder=cache_folder))
        temporary.replace(target)
    except OSError as error:
        raise StorageError(
            f"{target}: the model cannot be assembled there ({error.strerror}); free space or set XDG_CACHE_HOME"
        ) from error
    finally:
        # Where the folder could not be made, unlink fails as well, and would hide the error that tells why.
        with suppress(OSError):
            temporary.unlink()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as handle:
        while block := handle.read(_BLOCK_BYTES):
            yield block


def _stamp_path(path: Path, *, cache_folder: Path) -> Path:
    key = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    return cache_folder / "hashes" / f"{key}.json"


def _write_stamp(path: Path, sha256: str, *, stamp: Path) -> None:
    state = path.stat()
    content = _Stamp(sha256=sha256, size_bytes=state.st_size, modified_ns=state.st_mtime_ns)
    write_bytes(stamp, msgspec.json.encode(content))


def file_hash(path: Path, *, cache_folder: Path) -> str:
    """Return the sha256 of a file, from the cache folder while the file keeps its size and time of change."""
    stamp = _stamp_path(path, cache_folder=cache_folder)
    known = _read_stamp(stamp)
    state = path.stat()
    if known and (known.size_bytes, known.modified_ns) == (state.st_size, state.st_mtime_ns):
        return known.sha256
    digest: Any = hashlib.sha256()
    for block in _blocks(path):
        digest.update(block)
    # A cache that cannot be written costs the next start the same hashing again, nothing else.
    with suppress(StorageError):
        _write_stamp(path, digest.hexdigest(), stamp=stamp)
    return str(digest.hexdigest())


def _read_stamp(stamp: Path) -> _Stamp | None:
    try:
        return msgspec.json.decode(stamp.read_bytes(), type=_Stamp)
    except (OSError, msgspec.DecodeError):
        return None
