"""How documents are dealt into shards, and what shards are called."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mragaudit.errors import ConfigError

_SHARD = re.compile(r"([1-9][0-9]*)-of-([1-9][0-9]*)", re.ASCII)


def shard_of(position: int, n_shards: int) -> int:
    """Return the 1-based shard of the item at a 0-based position: round robin.

    Raises ConfigError for fewer than one shard.
    """
    if n_shards < 1:
        raise ConfigError(f"the number of shards is {n_shards}; it has to be 1 or more")
    return position % n_shards + 1


def deal(keys: Iterable[str], n_shards: int) -> dict[str, int]:
    """Return each key's 1-based shard: distinct keys are sorted by code point, then dealt round robin.

    Sizes of shards differ by at most one; the order of `keys` does not matter; no key gives an empty dict.
    """
    return {key: shard_of(position, n_shards) for position, key in enumerate(sorted(set(keys)))}


def shard_name(shard: int, n_shards: int) -> str:
    """Return the name of a 1-based shard, `2-of-4`; raises ConfigError when it lies outside."""
    if not 1 <= shard <= n_shards:
        raise ConfigError(f"shard {shard} of {n_shards} does not exist; the first is 1, the last {n_shards}")
    return f"{shard}-of-{n_shards}"


def shard_names(n_shards: int) -> tuple[str, ...]:
    """Return the names of all shards in order."""
    return tuple(shard_name(shard, n_shards) for shard in range(1, n_shards + 1))


def parse_shard(name: str) -> tuple[int, int]:
    """Return shard and number of shards of a name like `2-of-4`; raises ConfigError for any other text."""
    match = _SHARD.fullmatch(name)
    if match is None:
        raise ConfigError(f"{name!r} is no name of a shard; it looks like 2-of-4, counted from 1")
    shard, n_shards = int(match[1]), int(match[2])
    shard_name(shard, n_shards)
    return shard, n_shards
