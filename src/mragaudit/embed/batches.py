"""Batches in which a text's vector cannot depend on its neighbours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence


def even_batches(token_counts: Sequence[int], *, size: int) -> Iterator[tuple[int, ...]]:
    """Yield positions of texts, `size` at a time, all of one token count; every position comes at least once.

    Texts of one length need no padding, and a last batch is filled up by repeating its last position, so that every
    text is computed in the same shape (size, token count) whatever else is asked for. Lengths come shortest first.
    """
    by_count: dict[int, list[int]] = defaultdict(list)
    for position, count in enumerate(token_counts):
        by_count[count].append(position)
    for count in sorted(by_count):
        positions = by_count[count]
        for start in range(0, len(positions), size):
            batch = positions[start : start + size]
            yield (*batch, *[batch[-1]] * (size - len(batch)))
