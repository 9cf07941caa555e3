"""Where a torch model runs and how precisely, decided and checked before any weights are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from mragaudit.errors import BackendError, ConfigError
from mragaudit.registry import import_package

Device = Literal["auto", "cpu", "cuda"]


def prepare_device(device: Device, *, fp16: bool, threads: int, extra: str) -> str:
    """Return "cpu" or "cuda", and set this process's number of CPU threads.

    `auto` is the GPU where torch sees one. Raises ConfigError for `cuda` without a GPU and for half precision on a
    CPU, where it is slow and other numbers come out.
    """
    torch = import_package("torch", extra=extra)
    torch.set_num_threads(threads)
    # Both packages load weights through transformers, whose bars would fill a job's log.
    import_package("transformers", extra=extra).utils.logging.disable_progress_bar()
    present = bool(torch.cuda.is_available())
    if device == "cuda" and not present:
        raise ConfigError('embedder option "device" is "cuda", but torch sees no GPU here; give "auto" or "cpu"')
    chosen = "cuda" if present and device != "cpu" else "cpu"
    if fp16 and chosen == "cpu":
        raise ConfigError('embedder option "fp16" needs a GPU; leave it false on a CPU')
    return chosen


def require_batch(batch_size: int) -> int:
    """Return the batch size; raises ConfigError below 1."""
    if batch_size < 1:
        raise ConfigError(f'embedder option "batch_size" is {batch_size}; it must be at least 1')
    return batch_size


@contextmanager
def memory_explained(*, batch_size: int, extra: str) -> Iterator[None]:
    """Turn a GPU that is full into a BackendError that says what would help; no smaller batch is tried silently."""
    torch = import_package("torch", extra=extra)
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise BackendError(
            f'{extra}: the GPU is out of memory with batches of {batch_size}; lower the embedder option "batch_size" '
            f'or "max_tokens", or set "fp16" (each gives other vectors, so the index is made anew): {error}'
        ) from error
