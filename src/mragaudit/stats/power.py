"""What a number of documents can show at all, said before a run starts."""

from __future__ import annotations

from itertools import count

import msgspec
from scipy import special

from mragaudit.errors import ConfigError
from mragaudit.stats.paired import least_attainable_p


class DetectableGap(msgspec.Struct, frozen=True, kw_only=True):
    """The gap between two languages on the same documents that a paired test could see."""

    n_documents: int
    """Documents with both languages evaluated."""
    threshold: float
    """p-value that the first test of the Holm family must reach: alpha / tests."""
    least_discordant: int
    """Fewest discordant documents, all in one direction, whose exact McNemar p reaches the threshold."""
    least_gap: float | None
    """least_discordant / n_documents: no smaller observed gap is ever significant; None if n is too small."""
    power: float
    """Wanted probability of a significant result."""
    powered_gap: float | None
    """True one-directional gap that is significant with this probability; None if n is too small."""
    explanation: str
    """The same in a sentence."""


def explain_gap(n_documents: int, *, least_discordant: int, tests: int, power: float, gap: float | None) -> str:
    """Return the sentence for the plan; `gap` is the powered gap, None when n is too small."""
    if gap is None:
        return (
            f"With {n_documents} documents no gap between two languages can be significant "
            f"over {tests} tests: at least {least_discordant} are needed."
        )
    least = least_discordant / n_documents
    return (
        f"With {n_documents} documents, two languages must differ on at least {least_discordant} of them "
        f"({least:.1%}), all in one direction, to be significant over {tests} tests; "
        f"a true gap of {gap:.1%} would be seen with probability {power:.0%}."
    )


def detectable_gap(n_documents: int, *, alpha: float = 0.05, tests: int = 4, power: float = 0.8) -> DetectableGap:
    """Return which gap between two languages so many documents could show, as a lower bound.

    A Holm family of `tests` (default: English against four languages) rejects first at alpha / tests, and d
    discordant documents in one direction give the exact McNemar p 2 x 0.5^d. With a true gap g, all in one
    direction, d is binomial (n, g), so power solves P(X >= d) = I_g(d, n - d + 1) for g. Documents that
    differ in the other direction ask for more, whatever the base rate.
    n below least_discordant gives None for both gaps. Raises ConfigError for alpha or power outside (0, 1),
    tests below 1, or a negative number of documents.
    """
    if not (0.0 < alpha < 1.0 and 0.0 < power < 1.0 and tests >= 1 and n_documents >= 0):
        given = f"alpha = {alpha:g}, power = {power:g}, tests = {tests}, n_documents = {n_documents}"
        raise ConfigError(f"alpha and power must lie in (0, 1), tests be at least 1, documents 0; got {given}")
    needed = next(d for d in count(1) if least_attainable_p(d) <= alpha / tests)
    enough = n_documents >= needed
    gap = float(special.betaincinv(needed, n_documents - needed + 1, power)) if enough else None
    return DetectableGap(
        n_documents=n_documents,
        threshold=alpha / tests,
        least_discordant=needed,
        least_gap=needed / n_documents if enough else None,
        power=power,
        powered_gap=gap,
        explanation=explain_gap(n_documents, least_discordant=needed, tests=tests, power=power, gap=gap),
    )
