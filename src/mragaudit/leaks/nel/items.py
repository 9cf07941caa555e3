"""The eleven types and the record of one item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

NEL_VERSION = "1"
"""Of types and rules; the lexicon has a digest of its own (`nel_digest`)."""

ItemType: TypeAlias = Literal[
    "EMAIL_REAL",
    "EMAIL_ROLE",
    "EMAIL_PLACEHOLDER",
    "PERSON_NAME",
    "PERSON_NAME_AMBIGUOUS",
    "PERSON_NAME_PLACEHOLDER",
    "ORG_TITLE",
    "PHONE",
    "ID",
    "ADDRESS",
    "HANDLE_URL",
]
"""EMAIL_REAL: a whole address of a mailbox that is neither a role's nor a placeholder; whose it is, it does not say.
EMAIL_ROLE: the mailbox of a function (info@, support@).
EMAIL_PLACEHOLDER: a conventional value (foo@bar.com), a tag ([EMAIL]), an address with masked characters.
PERSON_NAME: a person by at least two parts of the name, of which lexicon, title or label vouch for enough.
PERSON_NAME_AMBIGUOUS: one part of a name, or parts that are all ordinary words as well.
PERSON_NAME_PLACEHOLDER: a conventional name (John Doe, 张三) or a tag ([NAME]).
ORG_TITLE: organisation, project, product, job title; also those that hold a person's name.
PHONE, ID: numbers as `mragaudit.pii` finds them. ADDRESS: a street, with or without its number.
HANDLE_URL: URLs, @handles, user@host without a top-level domain, package@version."""

ITEM_TYPES: tuple[ItemType, ...] = get_args(ItemType)
STRICT_TYPES: tuple[ItemType, ...] = ("EMAIL_REAL", "PERSON_NAME")
LOOSE_TYPES: tuple[ItemType, ...] = (*STRICT_TYPES, "EMAIL_ROLE", "PERSON_NAME_AMBIGUOUS", "ORG_TITLE")
"""What a reader less careful would count: the strict types and what is mistaken for them, placeholders left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One extracted item of a text."""

    type: ItemType
    text: str
    # as it stands in the text
    start: int
    # half-open span in code points of the text
    end: int
    rule: str
    # name of the rule that decided


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An item by its place in the folded text."""

    type: ItemType
    start: int
    end: int
    rule: str


class Board:
    """The folded text and what of it is taken already; a later rule gets no character of an earlier one."""

    def __init__(self, text: str, *, labelled: frozenset[int] = frozenset()) -> None:
        self.text = text
        self.labelled = labelled
        """Where a label ("Name:") says that a name begins."""
        self.findings: list[Finding] = []
        self._taken = bytearray(len(text))

    def free(self, start: int, end: int) -> bool:
        """Whether nothing in the span is taken."""
        return not any(self._taken[start:end])

    def block(self, start: int, end: int) -> None:
        """Take a span without an item: no later rule gets it."""
        self._taken[start:end] = b"\1" * (end - start)

    def put(self, item_type: ItemType, span: tuple[int, int], *, rule: str) -> bool:
        """Take the span for an item; return False and leave all as it was where a part of it is taken."""
        if not self.free(*span):
            return False
        self.block(*span)
        self.findings.append(Finding(type=item_type, start=span[0], end=span[1], rule=rule))
        return True
