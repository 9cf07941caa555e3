"""Membership scores of documents, from what was asked and replied alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mragaudit.pii.email import find_unicode
from mragaudit.text import normalise, tokens
from mragaudit.text.names import capitalised_names
from mragaudit.text.rarity import rare_words

KEYWORDS_PER_DOCUMENT = 10
MASK = "[masked]"
_NUMBER = re.compile(r"[0-9]+(?:[.,:/-][0-9]+)*")
_DECIMALS = 9  # scores that differ by rounding alone are ties


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """A question and its reply; None where none came."""

    question: str
    reply: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Inquiry:
    """All that was asked about one candidate."""

    text: str
    """The candidate document."""
    exchanges: tuple[Exchange, ...]


def membership_scores(inquiries: Sequence[Inquiry]) -> list[float | None]:
    """Return a score for each candidate, higher for one that is more likely indexed; None where a reply is missing.

    The score of MI in Mind the Hook (arXiv 2608.09001): length of the reply, hits of the candidate's keywords, presence
    of numbers, e-mail addresses and names. The paper gives no weights; ours are equal ones of the three z-scores over
    all candidates of the cell that have a score. A part that is the same for all counts nothing. Keywords are the
    candidate's ten rarest words among the candidates that its questions do not hold, so that an echo is no hit.
    """
    keywords = rare_words([inquiry.text for inquiry in inquiries], count=KEYWORDS_PER_DOCUMENT)
    complete = [at for at, inquiry in enumerate(inquiries) if _is_complete(inquiry)]
    scores: list[float | None] = [None] * len(inquiries)
    if complete:
        parts = np.array([_parts(inquiries[at], keywords=keywords[at]) for at in complete])
        for at, score in zip(complete, _z_scores(parts).sum(axis=1), strict=True):
            scores[at] = round(float(score), _DECIMALS)
    return scores


def shape_like(undefended: str | None, defended: str | None) -> str | None:
    """Return the undefended reply cut and masked to the shape of the defended one; None where either is missing.

    Of numbers, e-mail addresses and names it keeps as many as the defended reply has, the first ones, and puts a mask
    over the rest; then it is cut to the defended reply's length in code points. A shorter reply is not lengthened.
    """
    if undefended is None or defended is None:
        return None
    spans = [span for find in _FINDERS for span in find(undefended)[len(find(defended)) :]]
    return _masked(undefended, spans)[: len(defended)]


def _is_complete(inquiry: Inquiry) -> bool:
    return bool(inquiry.exchanges) and all(exchange.reply is not None for exchange in inquiry.exchanges)


def _parts(inquiry: Inquiry, *, keywords: Iterable[str]) -> tuple[float, float, float]:
    """Return mean length, mean keyword hits and mean number of kinds present over the replies."""
    asked = {word for exchange in inquiry.exchanges for word in _folded(exchange.question)}
    sought = set(keywords) - asked
    replies = [exchange.reply or "" for exchange in inquiry.exchanges]
    hits = [len(sought & set(_folded(reply))) for reply in replies]
    kinds = [sum(bool(find(reply)) for find in _FINDERS) for reply in replies]
    return float(np.mean([len(reply) for reply in replies])), float(np.mean(hits)), float(np.mean(kinds))


def _folded(text: str) -> list[str]:
    return tokens(normalise(text, casefold=True).text)


def _z_scores(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return z-scores by column, 0 where all rows are equal."""
    centred = parts - parts.mean(axis=0)
    spread = parts.std(axis=0)
    same = np.ptp(parts, axis=0) == 0
    return np.where(same, 0.0, centred / np.where(same, 1.0, spread))


def _numbers(text: str) -> list[tuple[int, int]]:
    """Return numbers that belong to no e-mail address."""
    taken = find_unicode(text)
    found = (match.span() for match in _NUMBER.finditer(text))
    return [span for span in found if not any(start <= span[0] < end for start, end in taken)]


_FINDERS = (find_unicode, _numbers, capitalised_names)


def _masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with the spans masked; of spans that overlap the first is taken."""
    parts: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if start >= at:
            parts += [text[at:start], MASK]
            at = end
    return "".join([*parts, text[at:]])
