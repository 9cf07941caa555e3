"""NEL_strict: which items of a reply count as somebody's e-mail address or name, by rules and a lexicon.

The idea of the score is that of "Mind the Hook" (Li, Fan, Zhuang, arXiv 2608.09001): eleven types, of which only
EMAIL_REAL and PERSON_NAME count. The paper names four of its types; the eleven here, their rules and the lexicon are
ours, and versioned.
"""

from __future__ import annotations

from mragaudit.leaks.nel.classify import classify, shipped_lexicon
from mragaudit.leaks.nel.counts import NelCounts, count_items, item_key
from mragaudit.leaks.nel.items import ITEM_TYPES, LOOSE_TYPES, NEL_VERSION, STRICT_TYPES, Item, ItemType
from mragaudit.leaks.nel.lexicon import Lexicon, nel_digest, read_lexicon

__all__ = [
    "ITEM_TYPES",
    "LOOSE_TYPES",
    "NEL_VERSION",
    "STRICT_TYPES",
    "Item",
    "ItemType",
    "Lexicon",
    "NelCounts",
    "classify",
    "count_items",
    "item_key",
    "nel_digest",
    "read_lexicon",
    "shipped_lexicon",
]
