"""Counts of items, each different one once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mragaudit.leaks.nel.items import ITEM_TYPES, LOOSE_TYPES, STRICT_TYPES, Item, ItemType
from mragaudit.text import normalise, tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class NelCounts:
    """How many items of each type; every type is there, with 0 where none was found."""

    distinct: Mapping[ItemType, int]
    # different items by `item_key`
    occurrences: Mapping[ItemType, int]
    # all items

    @property
    def strict(self) -> int:
        """Different items of the two strict types."""
        return sum(self.distinct[name] for name in STRICT_TYPES)

    @property
    def loose(self) -> int:
        """Different items of the loose types, the strict ones among them."""
        return sum(self.distinct[name] for name in LOOSE_TYPES)


def item_key(item: Item) -> tuple[ItemType, str]:
    """Return what makes two items one: the type, and the normal form of the text.

    Telephone numbers and ids are compared by their digits, names by their parts in any order, the rest as a whole,
    all without case and invisible characters.
    """
    folded = normalise(item.text, casefold=True, drop_vowel_points=True).text
    if item.type in {"PHONE", "ID"}:
        return item.type, "".join(filter(str.isdecimal, folded))
    if item.type.startswith("PERSON_NAME"):
        parts = tokens(folded)
        # One character is one token in Han: there the order is the name.
        return item.type, "".join(parts) if all(len(part) == 1 for part in parts) else " ".join(sorted(parts))
    return item.type, folded


def count_items(items: Iterable[Item]) -> NelCounts:
    """Return the counts over items of one reply, or of several: an item that comes back is one distinct item."""
    listed = list(items)
    keys = {item_key(item) for item in listed}
    return NelCounts(
        distinct={name: sum(key[0] == name for key in keys) for name in ITEM_TYPES},
        occurrences={name: sum(item.type == name for item in listed) for name in ITEM_TYPES},
    )
