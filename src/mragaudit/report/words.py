"""Numbers and names as the page prints them. Unknown is never printed as 0."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from mragaudit.stats.intervals import CONFIDENCE

MISSING = "—"
SHOWN_CHARS = 20_000  # a longer text would make the page slow; its full length is printed beside

METHOD_WORDS = {
    "bootstrap_document": "{level} percentile bootstrap over documents",
    "bootstrap_calls": "{level} percentile bootstrap over calls",
    "bootstrap_paired": "{level} paired bootstrap over documents",
    "bootstrap_paired_calls": "{level} paired bootstrap over calls",
    "wilson_one_sided_upper": "one-sided {level} Wilson upper bound",
    "wilson_one_sided_lower": "one-sided {level} Wilson lower bound",
    "wilson_two_sided": "two-sided {level} Wilson",
    "bootstrap_two_sample": "{level} percentile bootstrap over members and over non-members",
    "permutation_one_sided_lower": "one-sided {level} lower bound by dealing documents anew",
    "clopper_pearson_pairs": "one-sided {level} Clopper–Pearson bound over disjoint pairs",
    "clopper_pearson": "two-sided {level} Clopper–Pearson",
    "clopper_pearson_one_sided_upper": "one-sided {level} Clopper–Pearson upper bound",
    "clopper_pearson_one_sided_lower": "one-sided {level} Clopper–Pearson lower bound",
    "mcnemar_exact": "exact McNemar over documents",
    "poisson_exact_one_sided_upper": "one-sided {level} exact Poisson upper bound",
    "poisson_exact_two_sided": "two-sided {level} exact Poisson",
    "median_order_statistics": "{level} between order statistics",
}
STAGE_WORDS = {
    "queried": "not asked",
    "translated": "translation failed",
    "judge": "blocked by the judge",
    "retrieved": "document not retrieved",
    "generated": "value not in the answer",
    "filter": "caught by the output filter",
    "escaped": "escaped",
    "not evaluated": "not evaluated",
}
_LEVEL = ContextVar("level of the page's intervals", default=CONFIDENCE)
_VISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
_JOINERS = frozenset("\u200c\u200d\u00ad")  # Persian, Arabic and Indic spelling needs the joiners
_LAYOUT = frozenset("\n\t")


@contextmanager
def interval_level(confidence: float) -> Iterator[None]:
    """Have the words of a page say this level of its intervals; the published one where nobody says another."""
    before = _LEVEL.set(confidence)
    try:
        yield
    finally:
        _LEVEL.reset(before)


def as_level(confidence: float | None = None) -> str:
    """Return a level in words, `95 %`; without one that of the page."""
    return f"{100 * (_LEVEL.get() if confidence is None else confidence):.6g} %"


def is_missing(value: Any) -> bool:
    """Return whether a table cell holds nothing (None, NaN, pandas' NA or the empty string)."""
    if value is None or value == "":
        return True
    return bool(value != value)  # noqa: PLR0124 - the one test that NaN of every library passes


def as_share(value: Any) -> str:
    """Return a share with three decimals; a dash where there is none."""
    return MISSING if is_missing(value) else f"{float(value):.3f}"


def as_signed(value: Any) -> str:
    """Return a difference with its sign and three decimals; a dash where there is none."""
    return MISSING if is_missing(value) else f"{float(value):+.3f}".replace("-", "\u2212")


def as_count(value: Any) -> str:
    """Return a whole number with thousands separated by thin spaces; a dash where there is none."""
    return MISSING if is_missing(value) else f"{int(value):,}".replace(",", "\u2009")


def as_calls(value: Any) -> str:
    """Return a mean number of calls, whole where it is; a dash where there is none."""
    return MISSING if is_missing(value) else f"{float(value):.1f}".removesuffix(".0")


def as_p(value: Any) -> str:
    """Return a p value with three significant digits; a dash where there is none."""
    if is_missing(value):
        return MISSING
    return f"{float(value):.3g}" if float(value) >= 1e-4 else f"{float(value):.2e}"  # noqa: PLR2004 - shorter so


def as_rate(rate: Any, *, n: int) -> str:
    """Return a rate, or the words that say why there is none: it is never printed as 0 for n = 0."""
    return f"not evaluated (n = {n})" if is_missing(rate) else as_share(rate)


def as_interval(low: Any, high: Any, *, method: Any) -> str:
    """Return the limits as the method means them: `≤ 0.063` one-sided, `0.775 to 0.975` two-sided."""
    if is_missing(low) or is_missing(high):
        return MISSING
    if str(method).endswith("one_sided_upper"):
        return f"≤ {as_share(high)}"
    if str(method).endswith("one_sided_lower"):
        return f"≥ {as_share(low)}"
    return f"{as_share(low)} to {as_share(high)}"


def as_signed_interval(low: Any, high: Any) -> str:
    """Return the limits of a difference; a dash where there are none."""
    if is_missing(low) or is_missing(high):
        return MISSING
    return f"{as_signed(low)} to {as_signed(high)}"


def as_number(value: Any) -> str:
    """Return a measured number with three decimals; a dash where there is none or it is not finite."""
    if is_missing(value) or not math.isfinite(float(value)):
        return MISSING
    return f"{float(value):.3f}"


def method_in_words(method: Any, *, confidence: float | None = None) -> str:
    """Return an interval's or test's name in words; an unknown name as it is, a dash where there is none.

    The words say `confidence`, for an interval whose level is not that of the page.
    """
    if is_missing(method):
        return MISSING
    return METHOD_WORDS.get(str(method), str(method)).replace("{level}", as_level(confidence))


def visible(text: str) -> str:
    """Return the text with every control character shown: NUL as ␀, U+202E as ⟨U+202E⟩, and so on.

    Shown are C0 and C1 controls, format characters (which reorder or hide text), line and paragraph
    separators and lone surrogates. Newline, tab, the two zero-width joiners and the soft hyphen are left, as
    spelling and layout need them.
    """
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char in _LAYOUT or char in _JOINERS or unicodedata.category(char) not in _VISIBLE_CATEGORIES:
        return char
    if char == "\0":
        return "\u2400"
    return f"⟨U+{ord(char):04X}⟩"


def clip(text: str) -> str:
    """Return at most `SHOWN_CHARS` code points; a longer text ends with a note of its full length."""
    if len(text) <= SHOWN_CHARS:
        return text
    return f"{text[:SHOWN_CHARS]} … [shown: {SHOWN_CHARS:,} of {len(text):,} characters]"
