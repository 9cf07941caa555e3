"""Output filters: which families of personal data an answer shows, and where."""

from __future__ import annotations

from mragaudit.filters.base import FilterHit, OutputFilter
from mragaudit.filters.regex_ascii import REGEX_ASCII
from mragaudit.filters.regex_unicode import REGEX_UNICODE

__all__ = ["OUTPUT_FILTERS", "FilterHit", "OutputFilter", "matches_any_filter"]

OUTPUT_FILTERS: dict[str, OutputFilter] = {each.name: each for each in (REGEX_ASCII, REGEX_UNICODE)}


def matches_any_filter(text: str) -> bool:
    """Whether any output filter fires on the text; anchors must be texts on which none does."""
    return any(output_filter.apply(text).fired for output_filter in OUTPUT_FILTERS.values())
