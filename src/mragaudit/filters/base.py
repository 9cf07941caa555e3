"""What an output filter is and what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mragaudit.text import normalise

Finder = Callable[[str], list[tuple[int, int]]]

FAMILIES = ("email", "phone", "ssn")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterHit:
    """What a filter found in one answer."""

    fired: bool
    # whether any family was found
    families: tuple[str, ...]
    # the families found, in the order email, phone, ssn
    spans: tuple[tuple[str, int, int], ...]
    # family and half-open span in code points of the answer as it was, ordered by place


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFilter:
    """A named filter over the families email, phone and ssn."""

    name: str
    # identity in config, tables and records
    description: str
    # what it sees and what it does not, for the report
    normalised: bool
    # whether the finders see the normal form instead of the answer itself
    finders: Mapping[str, Finder]
    # family to spans on the text that the finder sees

    def apply(self, text: str) -> FilterHit:
        """Return the families that the answer shows and their spans on it; empty text never fires."""
        spans = self._on_normal_form(text) if self.normalised else self._on(text)
        return FilterHit(
            fired=bool(spans),
            families=tuple(family for family in FAMILIES if any(span[0] == family for span in spans)),
            spans=tuple(sorted(spans, key=lambda span: (span[1], span[2], span[0]))),
        )

    def _on(self, text: str) -> list[tuple[str, int, int]]:
        return [(family, *span) for family, find in self.finders.items() for span in find(text)]

    def _on_normal_form(self, text: str) -> list[tuple[str, int, int]]:
        mapped = normalise(text, keep_lines=True)
        return [(family, *mapped.original_span(start, end)) for family, start, end in self._on(mapped.text)]
