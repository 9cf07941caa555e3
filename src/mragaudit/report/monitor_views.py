"""The monitor's tables as its page prints them, and what they say in sentences."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import pandas as pd

from mragaudit.report import words
from mragaudit.report.tables import Column, Row, TableView, view

NEVER = "never"
ALL_PROFILES = "all"
CONFIGURED = "configured"


def text(header: str, key: str) -> Column:
    """Return a column of words."""

    def show(row: Row) -> str:
        return words.MISSING if words.is_missing(row[key]) else str(row[key]).replace("_", " ")

    return Column(header=header, show=show, numeric=False)


def count(header: str, key: str) -> Column:
    """Return a column of whole numbers."""
    return Column(header=header, show=lambda row: words.as_count(row[key]))


def decimal(header: str, key: str, *, digits: int = 2) -> Column:
    """Return a column of numbers with so many decimals."""
    return Column(header=header, show=lambda row: as_decimal(row[key], digits=digits))


def as_decimal(value: Any, *, digits: int) -> str:
    """Return a number with so many decimals, words for infinity, a dash for none."""
    if words.is_missing(value):
        return words.MISSING
    return NEVER if math.isinf(float(value)) else f"{float(value):.{digits}f}"


def rate(header: str, *, total: str, prefix: str = "") -> list[Column]:
    """Return share and interval; `total` is the number of units, not evaluated ones among them."""

    def share(row: Row) -> str:
        return words.as_rate(row[f"{prefix}rate"], n=int(row[total]) - int(row.get("n_not_evaluated", 0)))

    def limits(row: Row) -> str:
        low, high = row[f"{prefix}ci_low"], row[f"{prefix}ci_high"]
        return words.as_interval(low, high, method=row[f"{prefix}ci_method"])

    return [Column(header=header, show=share), Column(header=f"{words.as_level()} Wilson", show=limits)]


def median(header: str, name: str, *, digits: int = 1) -> Column:
    """Return a median with its limits in brackets; few values have a median and no limits."""

    def show(row: Row) -> str:
        middle = as_decimal(row[f"{name}_median"], digits=digits)
        if words.is_missing(row[f"{name}_ci_low"]):
            return middle
        low, high = (as_decimal(row[f"{name}_ci_{end}"], digits=digits) for end in ("low", "high"))
        return middle if low == middle == high else f"{middle} [{low}, {high}]"

    return Column(header=header, show=show)


def detection_view(detection: pd.DataFrame) -> TableView:
    """Return what the composite does to every kind of attacker, on the check seeds."""
    rows = _of(detection, part="check", signal="composite")
    columns = [
        text("attacker", "profile"),
        text("language", "lang"),
        count("n", "n_attackers"),
        count("not evaluated", "n_not_evaluated"),
        count("throttled", "n_detected"),
        *rate("share", total="n_attackers"),
        median("documents before", "documents"),
        median("items before", "items"),
        median("items disclosed", "disclosed"),
        median("queries before", "queries"),
        median("hours", "hours", digits=1),
        text("signals never evaluated", "signals_never_evaluated"),
    ]
    caption = (
        "Composite, configured thresholds, check seeds. Unit: the attacker, with all accounts. Medians over attackers "
        f"with {words.as_level()} limits between order statistics (none below 6 attackers)."
    )
    return view(rows, columns, caption=caption)


def signals_view(detection: pd.DataFrame) -> TableView:
    """Return how many attackers each signal alone and the composite throttle, on the check seeds."""
    rows = _of(detection, part="check")
    keys = ["profile", "lang"]
    wide = rows.pivot_table(index=keys, columns="signal", values="n_detected", sort=True).reset_index()
    known = rows[rows["signal"] == "composite"].set_index(keys)["n_attackers"]
    wide["n_attackers"] = [known[pair] for pair in zip(wide["profile"], wide["lang"], strict=True)]
    columns = [text("attacker", "profile"), text("language", "lang"), count("n", "n_attackers")]
    columns += [count(name, name) for name in ("volume", "coverage", "sensitivity", "composite") if name in wide]
    return view(
        wide, columns, caption="Attackers throttled by each signal alone, as long as it alerts, and by the composite."
    )


def alarms_view(alarms: pd.DataFrame, *, settings: str, by_signal: bool = False) -> TableView:
    """Return false alarms of every benign profile on the check seeds and in a log, with and without roles."""
    rows = _of(alarms[alarms["part"].isin(["check", "log"])], settings=settings)
    rows = rows if by_signal else _of(rows, signal="composite")
    columns = [
        text("part", "part"),
        *([text("signal", "signal")] if by_signal else []),
        text("profile", "profile"),
        text("roles", "roles"),
        count("users", "n_users"),
        count("not evaluated", "n_not_evaluated"),
        decimal("user-months", "user_months", digits=1),
        count("queries", "n_queries"),
        count("throttled", "n_throttled_queries"),
        count("spells", "n_spells"),
        count("alarms", "n_alarms"),
        decimal("a user-month", "alarms_per_user_month"),
        Column(header="upper bound", show=lambda row: f"≤ {as_decimal(row['upper'], digits=2)}"),
        count("users with any", "n_users_alarmed"),
        *rate("share of users", total="n_users", prefix="users_"),
    ]
    caption = (
        f"Thresholds: {settings}. A false alarm: a query of a benign user at which throttling begins or an alert goes "
        f"out. Upper bound: one-sided {words.as_level()} exact Poisson of alarms a user-month."
    )
    return view(rows, columns, caption=caption)


def recommendation_view(recommendation: pd.DataFrame) -> TableView:
    """Return the thresholds chosen for each budget and what they do on every part."""
    rows = recommendation.reindex(columns=[*recommendation.columns, *_absent(recommendation)])
    columns = [
        decimal("budget", "budget"),
        text("part", "part"),
        Column(
            header="chosen", show=lambda row: "yes" if bool(row["chosen"]) else "no setting keeps it", numeric=False
        ),
        Column(header="queries / coverage / sensitivity", show=_thresholds),
        Column(header="weights", show=_weights),
        decimal("throttle at", "throttle_at"),
        decimal("user-months", "user_months", digits=1),
        count("alarms", "n_alarms"),
        decimal("bound of the worst profile", "upper_worst_profile"),
        count("attackers", "n_attackers"),
        count("throttled", "n_detected"),
        Column(header=f"share, {words.as_level()} Wilson", show=_share_with_limits),
        median("documents before", "documents"),
    ]
    caption = (
        "Chosen on the development seeds: of the settings under which the upper bound of every benign profile keeps "
        "the budget, the one that throttles most attackers, then after fewest documents. Roles granted. Budget and "
        f"bounds: false alarms a user-month, one-sided {words.as_level()} exact Poisson."
    )
    return view(rows, columns, caption=caption)


def _share_with_limits(row: Row) -> str:
    if words.is_missing(row["rate"]):
        return words.MISSING
    limits = words.as_interval(row["ci_low"], row["ci_high"], method=row["ci_method"])
    return f"{words.as_share(row['rate'])} [{limits}]"


def _absent(table: pd.DataFrame) -> list[str]:
    """Return the columns that the table lacks where no setting was chosen at all."""
    measured = ["max_queries", "coverage_share", "sensitivity_share", "throttle_at", "user_months", "n_alarms"]
    measured += ["upper", "upper_worst_profile"]
    measured += ["n_attackers", "n_detected", "rate", "ci_low", "ci_high", "ci_method"]
    measured += [f"documents_{end}" for end in ("median", "ci_low", "ci_high")]
    measured += [f"weight_{name}" for name in ("volume", "coverage", "sensitivity")]
    return [name for name in measured if name not in table.columns]


def _weights(row: Row) -> str:
    return _joined([as_decimal(row[f"weight_{name}"], digits=2) for name in ("volume", "coverage", "sensitivity")])


def _thresholds(row: Row) -> str:
    shares = [as_decimal(row[name], digits=2) for name in ("coverage_share", "sensitivity_share")]
    return _joined([as_decimal(row["max_queries"], digits=0), *shares])


def _joined(parts: list[str]) -> str:
    return words.MISSING if set(parts) == {words.MISSING} else " / ".join(parts)


def throttling_view(throttling: pd.DataFrame) -> TableView:
    """Return the closed loop against the open one."""
    columns = [
        text("response", "response"),
        text("attacker", "profile"),
        text("language", "lang"),
        count("n", "n_attackers"),
        count("not evaluated", "n_not_evaluated"),
        count("throttled", "n_throttled"),
        median("documents, open", "documents_open"),
        median("documents, closed", "documents_closed"),
        median("share saved", "saved_share", digits=2),
        median("hours, open", "hours_open", digits=1),
        median("hours, closed", "hours_closed", digits=1),
    ]
    caption = (
        f"Medians over attackers with {words.as_level()} limits between order statistics; configured thresholds, check "
        "seeds."
    )
    return view(throttling, columns, caption=caption)


def languages_view(languages: pd.DataFrame) -> TableView:
    """Return the same sweep in every language on the check seeds."""
    columns = [
        text("language", "lang"),
        count("targets", "n_targets"),
        count("found", "n_targets_found"),
        *rate("share found", total="n_targets", prefix="target_found_"),
        count("distinct documents returned", "distinct_documents"),
        count("attackers", "n_attackers"),
        count("not evaluated", "n_not_evaluated"),
        count("throttled", "n_detected"),
        *rate("share", total="n_attackers"),
        median("documents before", "documents"),
        median("items before", "items"),
        median("hours", "hours", digits=1),
        median("documents minus English", "documents_minus_english"),
        median("hours minus English", "hours_minus_english", digits=1),
    ]
    caption = (
        "Low-and-slow sweep, the same targets in the same order at the same times in each language; check seeds. "
        "Differences are paired medians."
    )
    return view(_of(languages, part="check"), columns, caption=caption)


def collections_view(collections: pd.DataFrame) -> TableView:
    """Return alerts about whole collections on the check seeds and in a log."""
    columns = [
        text("part", "part"),
        text("group", "group"),
        count("groups", "n_groups"),
        count("not evaluated", "n_not_evaluated"),
        count("alerted", "n_alerted"),
        *rate("share", total="n_groups"),
        median("hours", "hours", digits=1),
        count("alerts", "n_alerts"),
        decimal("a group-month", "alerts_per_group_month"),
        Column(header=f"{words.as_level()} Poisson", show=_alert_limits),
    ]
    caption = "Alerts about all users of a tenant together. They never throttle. Unit: the tenant."
    return view(collections[collections["part"] != "development"], columns, caption=caption)


def _alert_limits(row: Row) -> str:
    if words.is_missing(row["alerts_low"]):
        return words.MISSING
    return f"{float(row['alerts_low']):.2f} to {float(row['alerts_high']):.2f}"


def _of(table: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    for name, value in wanted.items():
        table = table[table[name] == value]
    return table


def missed(detection: pd.DataFrame) -> list[str]:
    """Return a sentence for each kind of attacker of whom not all were throttled by the composite."""
    return list(_missed(_of(detection, part="check", signal="composite")))


def _missed(rows: pd.DataFrame) -> Iterator[str]:
    for row in rows.to_dict("records"):
        known = int(row["n_attackers"]) - int(row["n_not_evaluated"])
        if row["n_detected"] >= known:
            continue
        limits = words.as_interval(row["ci_low"], row["ci_high"], method=row["ci_method"])
        name, taken = str(row["profile"]).replace("_", " "), as_decimal(row["documents_median"], digits=1)
        yield (
            f"{name} ({row['lang']}): {int(row['n_detected'])} of {known} throttled "
            f"(two-sided {words.as_level()} Wilson {limits}), {taken} documents taken (median)."
        )


def roles_needed(alarms: pd.DataFrame, *, roles: Collection[str]) -> list[str]:
    """Return a sentence for each benign profile whose bound of false alarms is not below 1 without a role.

    `roles` are the profiles for which the replay knows a role.
    """
    rows = _of(alarms, part="check", signal="composite", settings=CONFIGURED)
    rows = rows[rows["profile"] != ALL_PROFILES]
    without, granted = (_of(rows, roles=name).set_index("profile") for name in ("without", "with"))
    over = [str(name) for name in without.index if _over(without.loc[name])]
    return [_role_sentence(name, without.loc[name], granted.loc[name] if name in roles else None) for name in over]


def _over(row: Any) -> bool:
    return not words.is_missing(row["upper"]) and float(row["upper"]) >= 1


def _role_sentence(name: str, without: Any, granted: Any | None) -> str:
    shown, alarms = name.replace("_", " "), int(without["n_alarms"])
    months, bound = as_decimal(without["user_months"], digits=1), as_decimal(without["upper"], digits=2)
    if not alarms:
        return f"{shown}: no alarm in {months} user-months, which are too few for an upper bound below 1 ({bound})."
    count_of = f"{alarms} alarm{'' if alarms == 1 else 's'} in {months} user-months (upper bound {bound})"
    if granted is None:
        return f"{shown}: {count_of}, and no role is given for it."
    left, after = as_decimal(granted["user_months"], digits=1), as_decimal(granted["upper"], digits=2)
    verdict = "still not below 1" if _over(granted) else "below 1"
    return (
        f"{shown}: without a role {count_of}; with its role {int(granted['n_alarms'])} in {left} "
        f"(upper bound {after}), {verdict}."
    )


def unevaluated(detection: pd.DataFrame, alarms: pd.DataFrame) -> list[str]:
    """Return a sentence for each signal that no query of the check seeds could evaluate."""
    frames = (
        _of(detection, part="check", signal="composite"),
        _of(alarms, part="check", signal="composite", settings=CONFIGURED),
    )
    everywhere = [_words_of(cell) for frame in frames for cell in frame["signals_never_evaluated"]]
    missing = set.intersection(*everywhere) if everywhere else set()
    return [
        f"{name} was never evaluated: the collection is smaller than the monitor's min_collection, or its size unknown."
        for name in sorted(missing)
    ]


def _words_of(cell: Any) -> set[str]:
    return set() if words.is_missing(cell) else set(str(cell).split())
