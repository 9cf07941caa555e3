"""CA-DP: DP-R under a budget that one asker spends over many questions.

Source: "Mind the Hook" (arXiv 2608.09001) names it in one phrase; horizon, splits, the ledger by principal and the
refusal are ours. Epsilon is nominal, as in DP-R, and for the same reasons.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mragaudit.defenses.base import BaseDefense, checked_positive
from mragaudit.defenses.dp_r import Sensitivity, score_covers, with_laplace
from mragaudit.errors import ConfigError
from mragaudit.rag.hooks import REFUSED_SCORE, Turn

Split = Literal["basic", "advanced", "geometric"]
LARGEST_EXPONENT = 700.0
"""Beyond it (709.78) the exponential does not fit a float."""


def advanced_total(epsilon: float, *, turns: int, delta: float) -> float:
    """Return the epsilon of `turns` mechanisms of `epsilon` each under advanced composition.

    Dwork and Roth, The Algorithmic Foundations of Differential Privacy (2014), theorem 3.20. Infinite where the
    exponential does not fit a float.
    """
    if epsilon > LARGEST_EXPONENT:
        return math.inf
    return math.sqrt(2 * turns * math.log(1 / delta)) * epsilon + turns * epsilon * math.expm1(epsilon)


def split_budget(total: float, *, horizon: int, split: Split, delta: float, decay: float) -> tuple[float, ...]:
    """Return the epsilon of each turn up to the horizon.

    `basic` gives equal shares, `geometric` shares that shrink by `decay` from turn to turn; they are rounded down where
    their sum would exceed the total. `advanced` gives equal shares that compose to the total, by whichever
    of basic and advanced composition loses less: with few turns that is basic.
    """
    if split == "advanced":
        share = max(total / horizon, _advanced_share(total, turns=horizon, delta=delta))
        while composed_total((share,) * horizon, split=split, delta=delta) > total:
            share = math.nextafter(share, 0.0)
        return (share,) * horizon
    weights = [decay**turn if split == "geometric" else 1.0 for turn in range(horizon)]
    return _rounded_down([total * weight / math.fsum(weights) for weight in weights], total=total)


def _advanced_share(total: float, *, turns: int, delta: float) -> float:
    # The first term alone reaches the total at the bracket's end.
    end = min(total / math.sqrt(2 * turns * math.log(1 / delta)), LARGEST_EXPONENT)
    return float(brentq(lambda share: advanced_total(share, turns=turns, delta=delta) - total, 0.0, end, xtol=1e-15))


def _rounded_down(shares: list[float], *, total: float) -> tuple[float, ...]:
    while math.fsum(shares) > total:
        shares = [math.nextafter(share, 0.0) for share in shares]
    return tuple(shares)


def composed_total(spent: tuple[float, ...], *, split: Split, delta: float) -> float:
    """Return what turns of these epsilons have cost together; 0 for none."""
    basic = math.fsum(spent)
    if split != "advanced" or not spent:
        return basic
    return min(basic, advanced_total(spent[0], turns=len(spent), delta=delta))


class CompositionAwareDp(BaseDefense):
    """DP-R with this turn's share of the asker's budget; when that is spent, no document is retrieved.

    The ledger goes by principal: a new session begins no new budget. With a horizon of one turn it is DP-R, bit for
    bit, until the budget is spent.
    """

    name = "ca_dp"
    title = "CA-DP (budget over a dialogue, nominal epsilon)"
    declared_hooks = ("scores",)
    random_hooks = ("scores",)
    covers = score_covers(
        "a second account begins a new budget; within the budget as DP-R",
        contents="whatever is retrieved within the budget reaches the model and the asker unchanged",
    )

    def __init__(
        self,
        *,
        epsilon: float = 5.0,
        horizon: int = 10,
        split: Split = "basic",
        sensitivity: Sensitivity = 1,
        delta: float = 1e-5,
        decay: float = 0.8,
    ) -> None:
        self.epsilon = checked_positive(epsilon, option="ca_dp.epsilon")
        for option, value in (("delta", delta), ("decay", decay)):
            if not 0 < value < 1:
                raise ConfigError(f"ca_dp.{option} is {value}; it has to lie between 0 and 1, both excluded")
        if horizon < 1:
            raise ConfigError(f"ca_dp.horizon is {horizon}; it has to be at least 1 turn")
        if not math.isfinite(epsilon):
            raise ConfigError("ca_dp.epsilon is infinite; a budget has to be finite")
        self.sensitivity = sensitivity
        self.split = split
        self.delta = delta
        self.turns = split_budget(epsilon, horizon=horizon, split=split, delta=delta, decay=decay)
        self._used: dict[str, int] = {}

    def spent(self, principal: str) -> float:
        """Return the part of the total budget that an asker has spent so far."""
        return composed_total(self.turns[: self._used.get(principal, 0)], split=self.split, delta=self.delta)

    def perturb_scores(self, scores: NDArray[np.float64], *, turn: Turn) -> NDArray[np.float64]:
        """Return noisy scores and charge the asker, or refuse every document where the turn would exceed the budget."""
        used = self._used.get(turn.principal, 0)
        if used >= len(self.turns):
            return np.full(np.shape(scores), REFUSED_SCORE)
        self._used[turn.principal] = used + 1
        return with_laplace(scores, epsilon=self.turns[used], sensitivity=self.sensitivity, rng=turn.rng)
