from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mragaudit.corpus.sharding import deal, parse_shard, shard_name, shard_names, shard_of
from mragaudit.errors import ConfigError

KEYS = st.lists(st.text("ab-\u0661字", max_size=3), max_size=20)


def test_sorted_keys_are_dealt_round_robin() -> None:
    assert deal(["d", "b", "a", "c", "e"], 2) == {"a": 1, "b": 2, "c": 1, "d": 2, "e": 1}


def test_no_key_gives_an_empty_deal() -> None:
    assert deal([], 3) == {}


@given(keys=KEYS, n_shards=st.integers(1, 9))
def test_every_key_has_one_shard_and_sizes_differ_by_at_most_one(keys: list[str], n_shards: int) -> None:
    dealt = deal(keys, n_shards)
    sizes = Counter(dealt.values())
    counts = [sizes[shard] for shard in range(1, n_shards + 1)]
    assert dealt.keys() == set(keys)
    assert sum(counts) == len(set(keys))
    assert max(counts) - min(counts) <= 1


@given(keys=KEYS, n_shards=st.integers(1, 9), seed=st.randoms())
def test_the_order_of_keys_does_not_matter(keys: list[str], n_shards: int, seed: object) -> None:
    shuffled = list(keys)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis passes a random.Random
    assert deal(shuffled, n_shards) == deal(keys, n_shards)


@given(n_shards=st.integers(1, 50), data=st.data())
def test_a_name_is_parsed_back(n_shards: int, data: st.DataObject) -> None:
    shard = data.draw(st.integers(1, n_shards))
    assert parse_shard(shard_name(shard, n_shards)) == (shard, n_shards)


def test_names_count_from_one() -> None:
    assert shard_names(3) == ("1-of-3", "2-of-3", "3-of-3")
    assert shard_of(3, 4) == 4


@pytest.mark.parametrize(
    "name", ["", "2", "2of4", "0-of-4", "2-of-0", "02-of-4", "2-of-4 ", "-1-of-4", "٢-of-4", "a-of-b"]
)
def test_another_text_is_no_shard(name: str) -> None:
    with pytest.raises(ConfigError, match="it looks like 2-of-4"):
        parse_shard(name)


def test_a_shard_beyond_the_last_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="shard 5 of 4 does not exist; the first is 1, the last 4"):
        parse_shard("5-of-4")


def test_fewer_than_one_shard_is_refused() -> None:
    with pytest.raises(ConfigError, match="number of shards is 0"):
        deal(["a"], 0)
