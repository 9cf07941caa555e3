from __future__ import annotations

import pytest

from mragaudit.embed.batches import even_batches


def test_texts_of_one_length_share_a_batch_that_is_filled_by_its_last() -> None:
    assert list(even_batches([3, 2, 3, 3], size=2)) == [(1, 1), (0, 2), (3, 3)]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_every_text_comes_and_every_batch_is_full_and_of_one_length(size: int) -> None:
    counts = [4, 1, 4, 4, 2, 1, 4, 4, 4]
    batches = list(even_batches(counts, size=size))
    assert {position for batch in batches for position in batch} == set(range(len(counts)))
    assert {len(batch) for batch in batches} == {size}
    assert all(len({counts[position] for position in batch}) == 1 for batch in batches)


def test_no_texts_give_no_batches() -> None:
    assert list(even_batches([], size=3)) == []
