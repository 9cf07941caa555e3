"""PAD as "Mind the Hook" (arXiv 2608.09001) has it: a regex masker of the reply.

Not Privacy-Aware Decoding (Wang et al., arXiv 2508.03098), which acts on the logits. The source names e-mail and
identifier patterns; telephone numbers and nine-digit ids are added as in the multilingual audit's output filter
(arXiv 2608.05163).
"""

from __future__ import annotations

# ruff: noqa: ARG002  # a hook takes what the protocol hands it
from dataclasses import dataclass
from typing import Literal

from mragaudit.defenses.base import BaseDefense, Cover, LeakClass
from mragaudit.filters import OUTPUT_FILTERS
from mragaudit.rag.hooks import Turn

Patterns = Literal["regex_ascii", "regex_unicode"]

TAGS = {"email": "[EMAIL]", "phone": "[PHONE]", "ssn": "[ID]"}
_LIMITS: dict[LeakClass, str] = {
    "email": "spelled-out, encoded, reversed or translated addresses, and those broken over lines",
    "phone": "numbers without country code, 3-3-4 grouping or cue word; spelled-out digits",
    "id": "ids that are not nine digits, or nine bare digits without a cue word; spelled-out digits",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Masked:
    """One masking: which reply, what kind of thing, and where it stood in it; never the thing itself."""

    reply: int
    """1-based, in the order of the calls of this object."""
    family: str
    start: int
    end: int


class RegexMasker(BaseDefense):
    """Replaces what the patterns find in a reply by the name of its kind; every other character stays as it is."""

    name = "pad"
    title = 'regex masker ("PAD" of Mind the Hook; not Privacy-Aware Decoding)'
    declared_hooks = ("response",)
    covers = tuple(
        Cover(leak_class=kind, hook="response", direct=True, limits=limits) for kind, limits in _LIMITS.items()
    )

    def __init__(self, *, patterns: Patterns = "regex_unicode") -> None:
        self.filter = OUTPUT_FILTERS[patterns]
        self.log: list[Masked] = []
        self._replies = 0

    def process_response(self, response: str, *, turn: Turn) -> str:
        """Return the reply with each match replaced by a tag; overlapping matches count for the one that begins first.

        Each match is logged by its place.
        """
        self._replies += 1
        parts: list[str] = []
        at = 0
        for family, start, end in self.filter.apply(response).spans:
            if start >= at:
                self.log.append(Masked(reply=self._replies, family=family, start=start, end=end))
                parts += [response[at:start], TAGS[family]]
                at = end
        return "".join([*parts, response[at:]])
