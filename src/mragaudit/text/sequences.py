"""How much of one token sequence stands in another: longest common subsequence, and runs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from mragaudit.text.normalise import normalise
from mragaudit.text.tokens import tokens


def folded_tokens(text: str) -> list[str]:
    """Return the word tokens of the text in normal form and lower case."""
    return tokens(normalise(text, casefold=True).text)


@dataclass(frozen=True, kw_only=True, slots=True)
class RougeL:
    """Longest common subsequence of two texts, as shares of either; 0 where a text has no tokens."""

    recall: float
    """Share of the reference's tokens."""
    precision: float
    """Share of the text's tokens."""


class Reference:
    """A token sequence prepared for many comparisons, each in O(length of the other) operations on integers.

    Bit-parallel: Hyyrö, Bit-parallel LCS-length computation revisited (2004).
    """

    def __init__(self, items: Sequence[Hashable]) -> None:
        self.length = len(items)
        self._all = (1 << self.length) - 1
        self._places: dict[Hashable, int] = {}
        for at, item in enumerate(items):
            self._places[item] = self._places.get(item, 0) | (1 << at)

    def common_length(self, items: Sequence[Hashable]) -> int:
        """Return the length of the longest common subsequence."""
        row = self._all
        for item in items:
            places = self._places.get(item)
            if places is not None:
                hit = row & places
                row = ((row + hit) | (row - hit)) & self._all
        return self.length - row.bit_count()

    def rouge_l(self, items: Sequence[Hashable]) -> RougeL:
        """Return ROUGE-L of a text's tokens against this reference (Lin, 2004)."""
        common = self.common_length(items)
        return RougeL(
            recall=common / self.length if self.length else 0.0, precision=common / len(items) if items else 0.0
        )


def rouge_l(text: str, *, reference: str) -> RougeL:
    """Return ROUGE-L of a text against a reference text, over folded word tokens."""
    return Reference(folded_tokens(reference)).rouge_l(folded_tokens(text))


def runs(items: Sequence[Hashable], *, length: int) -> set[tuple[Hashable, ...]]:
    """Return all runs of so many consecutive items; none where there are fewer."""
    return {tuple(items[at : at + length]) for at in range(len(items) - length + 1)}
