"""The append-only store of finished model calls that stands before every backend.

A key is a hash of everything that determines an answer and of nothing else, so a killed run resumes where it was
and a changed config computes only what it changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from mragaudit.errors import DataError, StorageError
from mragaudit.protocols import (
    TRANSLATION,
    ChooseRequest,
    Completion,
    GenerateRequest,
    ModelIdentity,
    OptionScores,
    SelectRequest,
)

logger = logging.getLogger(__name__)

Answer = Completion | OptionScores


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One finished call."""

    key: str
    answer: Answer


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """What a journal file holds, and where its last whole line ends."""

    answers: dict[str, Answer]
    """Key → answer; of two entries with one key the last counts."""
    n_duplicates: int
    end: int
    """Length in bytes of the part that is whole; what follows is a torn line."""


class ResumePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is left to do, given what an earlier run left behind."""

    effective: dict[str, object]
    """Task id → its last row."""
    orphans: tuple[str, ...]
    """Ids that no task of today has; they are left out of every denominator."""
    duplicates: tuple[str, ...]
    redo: tuple[str, ...]
    """Tasks without a row, in task order."""


def fingerprint(value: object) -> str:
    """Return the sha256 of plain data: the order of keys does not count, the order of lists does."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


def request_key(request: GenerateRequest | ChooseRequest | SelectRequest, identity: ModelIdentity) -> str:
    """Return the journal key of a call: model, what it reads of the prompt, decoding and repeat index, nothing else.

    A translation model reads the prompt's task, every other model its messages.
    """
    decisive = msgspec.to_builtins(request)
    task = decisive["prompt"].pop("task")
    if identity.rendering == TRANSLATION:
        decisive["prompt"] = task
    return fingerprint([type(request).__name__, msgspec.to_builtins(identity), decisive])


def resume_plan(rows: Iterable[tuple[str, object]], task_ids: Iterable[str]) -> ResumePlan:
    """Return which rows count and which tasks are still to do; of two rows with one id the last counts."""
    tasks = list(task_ids)
    wanted = set(tasks)
    effective: dict[str, object] = {}
    orphans: dict[str, None] = {}
    duplicates: dict[str, None] = {}
    for name, row in rows:
        if name not in wanted:
            orphans[name] = None
            continue
        if name in effective:
            duplicates[name] = None
        effective[name] = row
    redo = tuple(name for name in tasks if name not in effective)
    return ResumePlan(effective=effective, orphans=tuple(orphans), duplicates=tuple(duplicates), redo=redo)


def recover(path: Path) -> Recovered:
    """Return the finished calls of a journal file; a missing file is an empty journal.

    A last line without its newline was torn by a crash and is left out. Any other bad line raises DataError with
    file and line: it was not written by us. Raises StorageError when the file cannot be read.
    """
    answers: dict[str, Answer] = {}
    duplicates = 0
    end = 0
    decoder = msgspec.json.Decoder(Entry)
    try:
        handle = path.open("rb")
    except FileNotFoundError:
        return Recovered(answers={}, n_duplicates=0, end=0)
    except OSError as error:
        raise StorageError(f"{path}: the journal cannot be opened ({error.strerror})") from error
    with handle:
        for number, line in enumerate(handle, start=1):
            if not line.endswith(b"\n"):
                logger.warning("%s, line %d: torn by an interruption, dropped", path, number)
                break
            entry = _decode(line, decoder, where=f"{path}, line {number}")
            duplicates += entry.key in answers
            answers[entry.key] = entry.answer
            end += len(line)
    return Recovered(answers=answers, n_duplicates=duplicates, end=end)


def _decode(line: bytes, decoder: msgspec.json.Decoder[Entry], *, where: str) -> Entry:
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(
            f"{where}: no journal entry ({error}); delete this line, its call will be made again"
        ) from error


class Journal:
    """One journal file open for appending, with the finished calls of its siblings to read from.

    Siblings are the other shards' journals of the same stage: after a change of the number of shards, and between
    calibration and judging, no call is made twice. Raises StorageError where the file cannot be opened or another
    process has it open, and what `recover` raises.
    """

    def __init__(
        self, path: Path, *, siblings: Iterable[Path] = (), batch_calls: int = 16, batch_seconds: float = 10.0
    ):
        self.path = path
        self._answers: dict[str, Answer] = {}
        for sibling in siblings:
            if sibling != path:
                self._answers.update(recover(sibling).answers)
        self._batch_calls = batch_calls
        self._batch_seconds = batch_seconds
        self._unsynced = 0
        self._last_sync = time.monotonic()
        self._file = self._open()
        try:
            own = self._read_own()
        except BaseException:
            self._file.close()
            raise
        self._answers.update(own.answers)
        self.n_duplicates = own.n_duplicates

    def _open(self) -> BinaryIO:
        """Open for appending, alone: what another job appends would be cut off as a torn tail, or be made twice."""
        try:
            handle = self._appending()
        except OSError as error:
            raise self._unopened(error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            handle.close()
            raise StorageError(
                f"{self.path}: another job is writing this journal, such as one that a killed run left behind; wait "
                "until it has ended, or stop it, and run the same command again"
            ) from error
        except OSError as error:  # a network file system may have no locks
            logger.warning("%s: cannot be locked (%s); see that no second job writes it", self.path, error.strerror)
        return handle

    def _appending(self) -> BinaryIO:
        try:
            return open(self.path, "ab", buffering=0)  # closed by close()
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return open(self.path, "ab", buffering=0)

    def _read_own(self) -> Recovered:
        """Return the finished calls after cutting a torn tail, so that the next entry begins a line."""
        own = recover(self.path)
        try:
            if self._file.seek(0, os.SEEK_END) > own.end:
                self._file.truncate(own.end)
        except OSError as error:
            raise self._unopened(error) from error
        return own

    def _unopened(self, error: OSError) -> StorageError:
        return StorageError(f"{self.path}: the journal cannot be opened ({error.strerror})")

    def set_batch(self, *, calls: int, seconds: float) -> None:
        """Bound what may be appended and not yet on disk, as the backend says: one that batches writes in bursts."""
        self._batch_calls = calls
        self._batch_seconds = seconds

    def get(self, key: str) -> Answer | None:
        """Return the finished call with this key, None when there is none."""
        return self._answers.get(key)

    def __len__(self) -> int:
        return len(self._answers)

    def append(self, key: str, answer: Answer) -> None:
        """Add a finished call; it is on disk after at most `batch_calls` calls or `batch_seconds` seconds.

        Raises StorageError when the disk is full: what was appended before stays.
        """
        line = msgspec.json.encode(Entry(key=key, answer=answer)) + b"\n"
        try:
            self._write_whole(line)
        except OSError as error:
            raise self._unwritable(error) from error
        self._answers[key] = answer
        self._unsynced += 1
        if self._unsynced >= self._batch_calls or time.monotonic() - self._last_sync >= self._batch_seconds:
            self.sync()

    def _write_whole(self, line: bytes) -> None:
        """Write one line; a short write, as on a full disk, is taken back so that no torn line stays inside."""
        start = self._file.seek(0, os.SEEK_END)
        written = self._file.write(line)
        if written != len(line):
            self._file.truncate(start)
            raise OSError(28, "No space left on device")

    def _unwritable(self, error: OSError) -> StorageError:
        return StorageError(
            f"{self.path}: cannot be written ({error.strerror}); finished calls are kept, "
            "free space and run the same command again"
        )

    def sync(self) -> None:
        """Put what was appended on disk; raises StorageError where that fails."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._unwritable(error) from error
        self._unsynced = 0
        self._last_sync = time.monotonic()

    def close(self) -> None:
        """Sync and close."""
        if not self._file.closed:
            self.sync()
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def known_answers(journals: Mapping[str, Path] | Iterable[Path]) -> int:
    """Return how many distinct finished calls a set of journal files holds."""
    paths = journals.values() if isinstance(journals, Mapping) else journals
    keys: set[str] = set()
    for path in paths:
        keys.update(recover(path).answers)
    return len(keys)
