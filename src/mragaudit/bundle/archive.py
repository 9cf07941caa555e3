"""One archive (tar.gz): written with the same bytes for the same files, read without believing what it says of itself.

It is read in one pass. Every byte that is decompressed is counted against what may still come, so that neither a
header nor the compression can claim more than is allowed; files are written by us, one by one, and nothing else of
tar's abilities (links, devices, owners, modes) is carried out.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self

import msgspec

from mragaudit.bundle.names import check_name, require_inside
from mragaudit.errors import ArchiveError, StorageError

FIXED_SECONDS = 315_532_800
"""Time of every file, 1980-01-01: all are equally old, so no file is newer than what was made from it."""
MODE = 0o644
LEVEL = 9
CHUNK_BYTES = 1 << 20
HEADER_BYTES = 256 * 1024
"""What may be read between two files: headers, their extensions, padding and tar's read-ahead."""

_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)
# Longer names and times, as tar programs write them before a file; their size counts against HEADER_BYTES.
_EXTENSIONS = (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME)
_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive may hold at most."""

    n_files: int = 20_000
    n_bytes: int = 1024**3
    """Of all files together, decompressed."""


LIMITS = Limits()


def write_archive(path: Path, members: Mapping[str, Path | bytes]) -> None:
    """Write the members, sorted by name, with fixed time, owner and mode; readers see all of the archive or none.

    Raises ArchiveError for a name that a bundle may not hold, StorageError where the disk does not take it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as handle:
            _write(handle, members)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _write(handle: BinaryIO, members: Mapping[str, Path | bytes]) -> None:
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=handle, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name in sorted(members):
            _add(tar, check_name(name), content=members[name])


def _add(tar: tarfile.TarFile, name: str, *, content: Path | bytes) -> None:
    header = tarfile.TarInfo(name)
    header.mtime, header.mode = FIXED_SECONDS, MODE
    with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as handle:
        header.size = handle.seek(0, os.SEEK_END)
        handle.seek(0)
        tar.addfile(header, handle)


def unpack_archive(path: Path, folder: Path, *, limits: Limits = LIMITS) -> dict[str, str]:
    """Write the files of an archive below an empty folder and return their names and sha256.

    Raises ArchiveError, naming the file, for one that is damaged or holds anything but plain files with names of a
    bundle, a name twice, or more than the limits; what was written until then is the caller's to delete.
    """
    try:
        with path.open("rb") as handle, gzip.GzipFile(fileobj=handle) as packed:
            return _Unpacking(folder, limits).take(packed)
    except ArchiveError as error:
        raise ArchiveError(f"{path}: {error}") from error
    except FileNotFoundError as error:
        raise ArchiveError(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise ArchiveError(f"{path}: this is a folder; name the archive, bundle.tar.gz") from error
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise ArchiveError(f"{path}: damaged, or no archive of ours ({error}); fetch it again") from error


class _Header(tarfile.TarInfo):
    """A header that is refused before what follows it is read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf and not any(buf):
                raise  # a block of zeros is the end; a broken header is taken for one by tar's reader
            raise ArchiveError(f"damaged, or no archive of ours ({error}); fetch it again") from error
        if header.type not in (*_PLAIN, *_EXTENSIONS, tarfile.DIRTYPE):
            kind = _KINDS.get(header.type, f"an entry of type {header.type!r}")
            raise ArchiveError(f"{header.name!r} is {kind}; a bundle holds plain files alone")
        return header


class _Metered(io.RawIOBase):
    """A stream that gives no more bytes than its budget."""

    def __init__(self, source: gzip.GzipFile) -> None:
        self._source = source
        self.budget = HEADER_BYTES

    def read(self, size: int = -1, /) -> bytes:
        wanted = CHUNK_BYTES if size < 0 else min(size, CHUNK_BYTES)
        content = self._source.read(wanted)
        self.budget -= len(content)
        if self.budget < 0:
            raise ArchiveError("more bytes come than the headers of its files say")
        return content


class _Unpacking:
    """One pass over one archive."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._n_entries = 0
        self._n_bytes = 0
        self._folded: set[str] = set()
        self._parents: set[str] = set()
        self._digests: dict[str, str] = {}

    def take(self, source: gzip.GzipFile) -> dict[str, str]:
        """Write all files and return their sha256 by name."""
        stream = _Metered(source)
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as tar:
            while (header := _next(tar, stream)) is not None:
                self._count(header)
                if header.isdir():
                    require_inside(header.name)  # folders are made for files alone, but such an archive is hostile
                    continue
                name = self._fresh(header)
                stream.budget = header.size + HEADER_BYTES
                self._digests[name] = self._write(name, tar=tar, header=header)
            _require_end(tar, stream)
        return self._digests

    def _count(self, header: tarfile.TarInfo) -> None:
        self._n_entries += 1
        self._n_bytes += max(0, header.size)
        if self._n_entries > self._limits.n_files:
            raise ArchiveError(f"it holds more than {self._limits.n_files} files; --max-files allows more")
        if self._n_bytes > self._limits.n_bytes:
            raise ArchiveError(f"it holds more than {self._limits.n_bytes} bytes; --max-bytes allows more")

    def _fresh(self, header: tarfile.TarInfo) -> str:
        """Return the checked name of a file that stands in the archive for the first time."""
        if header.size < 0 or header.issparse():
            raise ArchiveError(f"{header.name!r} has holes or no size; a bundle holds plain files alone")
        name = check_name(header.name)
        folded = name.casefold()
        parents = {str(parent) for parent in PurePosixPath(folded).parents}
        if folded in self._folded or folded in self._parents or parents & self._folded:
            raise ArchiveError(f"{name!r} stands twice in it, or both as a file and as a folder")
        self._folded.add(folded)
        self._parents |= parents
        return name

    def _write(self, name: str, *, tar: tarfile.TarFile, header: tarfile.TarInfo) -> str:
        content = tar.extractfile(header)
        if content is None:
            raise ArchiveError(f"{name!r} has no content")
        target = self._folder / name
        digest = hashlib.sha256()
        with _create(target) as handle:
            while chunk := content.read(CHUNK_BYTES):
                digest.update(chunk)
                _put(handle, chunk, target=target)
        os.utime(target, (FIXED_SECONDS, FIXED_SECONDS))
        return digest.hexdigest()


def _next(tar: tarfile.TarFile, stream: _Metered) -> tarfile.TarInfo | None:
    stream.budget = HEADER_BYTES
    return tar.next()


def _require_end(tar: tarfile.TarFile, stream: _Metered) -> None:
    """Read to the end, where gzip's checksum stands; what follows the last file may only be padding."""
    stream.budget = HEADER_BYTES
    ahead = tar.fileobj
    while ahead is not None and (rest := ahead.read(tarfile.RECORDSIZE)):
        if any(rest):
            raise ArchiveError("bytes that belong to no file follow its last file")


def _create(target: Path) -> BinaryIO:
    """Open a new file for writing; a fault of the disk is told from one of the archive."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.open("xb")
    except OSError as error:
        raise StorageError(f"{target}: cannot be written ({error.strerror})") from error


def _put(handle: BinaryIO, chunk: bytes, *, target: Path) -> None:
    try:
        handle.write(chunk)
    except OSError as error:
        raise StorageError(f"{target}: cannot be written ({error.strerror}); free space and try again") from error
