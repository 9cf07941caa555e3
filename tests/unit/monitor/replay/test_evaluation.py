"""Tables of the replay, worked out by hand on a few actors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pandas as pd
import pytest
from replay_sample import actor_of, asked

from mragaudit.config.monitor_section import Sweep
from mragaudit.monitor.evaluation.alarms import collections_table, false_alarms_table
from mragaudit.monitor.evaluation.detection import detection_table, languages_table
from mragaudit.monitor.evaluation.replayed import Replayed, Rules
from mragaudit.monitor.evaluation.thresholds import (
    Scored,
    cells_of,
    chosen_cell,
    curves_table,
    part_of,
    recommendation_table,
    scores_of,
    sweep_table,
)
from mragaudit.monitor.evaluation.throttling import throttling_table
from mragaudit.monitor.grid import cell_of
from mragaudit.monitor.rejudge import Actor
from mragaudit.monitor.settings import MonitorSettings, RoleLimits
from mragaudit.records.replay import DeliveredQuery

# Enough documents for both shares to count, and little of either: the composite acts through volume's floor alone.
HARMLESS: dict[str, int] = {"distinct": 10, "returned": 40, "sensitive": 0}
RULES = Rules(settings=MonitorSettings(), roles={"reader": RoleLimits(max_queries=80)}, confidence=0.95)


def _fast(name: str, *, lang: str = "en", queries: int = 60) -> Actor:
    """Return an attacker who asks every minute, two new documents each, so that query 51 is throttled."""
    rows = [
        asked(
            n, actor=name, minutes=n, queries=n + 1, documents=[f"{n}a", f"{n}b"], target=f"{n}a", lang=lang, **HARMLESS
        )
        for n in range(queries)
    ]
    return actor_of(rows)


def _slow(name: str) -> Actor:
    """Return an attacker who asks once a day, and is never throttled."""
    return actor_of([asked(n, actor=name, minutes=1_440 * n, documents=[f"{n}"], target=f"{n}") for n in range(5)])


def _user(name: str, *, peak: int) -> Actor:
    """Return a benign user with at most `peak` queries an hour."""
    rows = [
        asked(n, actor=name, kind="benign", minutes=n * 60, queries=load, **HARMLESS)
        for n, load in enumerate((5, peak, 5))
    ]
    return actor_of(rows)


def _replayed(actors: Sequence[Actor], *, months: float = 1.0) -> Replayed:
    return Replayed(part="check", actors=actors, months_per_user=months)


def _row(table: pd.DataFrame, **wanted: Any) -> dict[Any, Any]:
    for name, value in wanted.items():
        table = table[table[name] == value]
    assert len(table) == 1
    return table.to_dict("records")[0]


def test_detection_counts_attackers_and_what_they_took_before_the_throttled_query() -> None:
    row = _row(detection_table([_replayed([_fast("a"), _slow("b")])], rules=RULES), signal="composite")
    assert (row["n_attackers"], row["n_not_evaluated"], row["n_detected"]) == (2, 0, 1)
    assert (row["rate"], row["ci_method"]) == (0.5, "wilson_two_sided")
    # 50 queries of two documents against five of one; the second is never throttled, so the median is infinite.
    assert (row["documents_median"], row["items_median"], row["hours_median"]) == (52.5, 27.5, math.inf)
    assert row["documents_ci_method"] == ""


def test_a_signal_without_any_value_leaves_the_attacker_not_evaluated() -> None:
    rows = [asked(n, minutes=n, queries=60, size=None) for n in range(3)]
    table = detection_table([_replayed([actor_of(rows)])], rules=RULES)
    coverage = _row(table, signal="coverage")
    assert (coverage["n_attackers"], coverage["n_not_evaluated"], coverage["n_detected"]) == (1, 1, 0)
    assert pd.isna(coverage["rate"])
    composite = _row(table, signal="composite")
    assert composite["n_detected"] == 1
    assert composite["signals_never_evaluated"] == "coverage sensitivity"


def test_each_signal_alone_sees_what_is_its_own() -> None:
    """Half of 40 documents sensitive, 10 of 100 covered: sensitivity alone alerts, and through its floor all three."""
    rows = [asked(0, minutes=0, distinct=10, returned=40, sensitive=20)]
    table = detection_table([_replayed([actor_of(rows)])], rules=RULES)
    found = {row["signal"]: row["n_detected"] for row in table.to_dict("records")}
    assert found == {"composite": 1, "volume": 0, "coverage": 0, "sensitivity": 1}


def test_false_alarms_are_counted_a_user_month_with_an_exact_bound() -> None:
    users = [_user("quiet", peak=30), _user("busy", peak=60)]
    table = false_alarms_table([_replayed(users, months=3.0)], chosen={}, rules=RULES)
    without = _row(table, signal="composite", roles="without", profile="reader")
    assert (without["n_users"], without["user_months"], without["n_spells"]) == (2, 6.0, 1)
    assert (without["n_alarms"], without["n_users_alarmed"], without["users_rate"]) == (1, 1, 0.5)
    assert without["alarms_per_user_month"] == pytest.approx(1 / 6)
    assert without["upper"] == pytest.approx(4.7439 / 6, abs=1e-4)
    granted = _row(table, signal="composite", roles="with", profile="reader")
    assert (granted["n_alarms"], granted["upper"]) == (0, pytest.approx(2.9957 / 6, abs=1e-4))
    assert granted["upper_below_1"]


def test_a_user_without_any_evaluated_query_adds_no_exposure() -> None:
    rows = [asked(n, actor="u", kind="benign", minutes=n, size=None) for n in range(3)]
    table = false_alarms_table([_replayed([actor_of(rows)])], chosen={}, rules=RULES)
    row = _row(table, signal="coverage", roles="without", profile="reader")
    assert (row["n_users"], row["n_not_evaluated"], row["user_months"]) == (1, 1, 0.0)
    assert pd.isna(row["upper"])


def test_alerts_about_a_collection_are_counted_a_group() -> None:
    rows = [asked(n, actor="u", kind="benign", minutes=60 * n, collection_alert=n in (2, 5)) for n in range(6)]
    row = _row(collections_table([_replayed([actor_of(rows), _fast("a")])], rules=RULES), group="benign users together")
    assert (row["n_groups"], row["n_alerted"], row["n_alerts"], row["hours_median"]) == (1, 1, 2, 2.0)
    assert (row["alerts_per_group_month"], row["alerts_method"]) == (2.0, "poisson_exact_two_sided")


def test_languages_are_compared_attacker_by_attacker() -> None:
    sweeps = [
        actor_of([*_rows("low_and_slow-en-s1-1", "en", until=51)]),
        actor_of([*_rows("low_and_slow-sw-s1-1", "sw", until=53)]),
    ]
    table = languages_table([_replayed(sweeps)], languages=("en", "sw"), rules=RULES)
    swahili = _row(table, lang="sw")
    assert (swahili["n_pairs"], swahili["documents_minus_english_median"]) == (1, 2.0)
    assert swahili["hours_minus_english_median"] == pytest.approx(2 / 60)
    assert (swahili["n_targets"], swahili["n_targets_found"]) == (60, 60)
    assert _row(table, lang="en")["n_pairs"] == 0


def _rows(name: str, lang: str, *, until: int) -> Sequence[Any]:
    """Return a sweep of which query number `until`, counted from 1, is the first to be throttled."""
    rows = [
        asked(
            n, actor=name, minutes=n, queries=51 if n + 1 >= until else 1, documents=[f"{n}"], target=f"{n}", lang=lang
        )
        for n in range(60)
    ]
    return [
        type(one)(event=msgspec.structs.replace(one.event, profile="low_and_slow"), counted=one.counted) for one in rows
    ]


def test_the_grid_begins_with_the_configured_settings_and_has_every_cell_once() -> None:
    cells = cells_of(Sweep(), MonitorSettings())
    assert cells[0] == cell_of(MonitorSettings())
    assert len(cells) == 4 * 4 * 5 * 3 * 3
    assert all(one.release_at <= one.throttle_at for one in cells)


def test_the_sweep_counts_detection_and_spells_of_every_cell() -> None:
    part = part_of(_replayed([_fast("a"), _slow("b"), _user("u", peak=90)], months=2.0), RULES)
    sweep = Sweep(
        max_queries=(40,),
        coverage_share=(0.8,),
        sensitivity_share=(0.3,),
        throttle_at=(0.7,),
        weights=((0.4, 0.35, 0.25),),
    )
    scores = scores_of(part, cells_of(sweep, RULES.settings), rules=RULES)
    table = sweep_table([part], [scores], rules=RULES)
    row = _row(table, max_queries=40)
    assert (row["n_attackers"], row["n_detected"], row["n_spells"], row["user_months"]) == (2, 1, 1, 2.0)
    # 40 queries of two documents before query 41, and the slow attacker's five.
    assert row["documents_median"] == (80 + 5) / 2


def test_a_curve_detects_less_as_its_threshold_rises() -> None:
    part = part_of(_replayed([_fast("a"), _user("u", peak=90)]), RULES)
    table = curves_table([part], rules=RULES)
    volume = table[table["signal"] == "volume"].sort_values("scale")
    assert list(volume["n_detected"]) == [1] * 11 + [0] * 6  # 60 queries are more than 50 times 1.1, not 1.2
    assert volume["documents_median"].is_monotonic_increasing


def _scored(cell: Any, *, detected: int, documents: Sequence[int], upper: float | None) -> Scored:
    return Scored(cell=cell, detected=detected, documents=documents, entries=0, users_hit=0, upper=upper)


def test_the_choice_keeps_the_budget_by_its_bound_and_then_detects_most() -> None:
    cells = cells_of(Sweep(), MonitorSettings())
    part = part_of(_replayed([_fast("a"), _user("u", peak=10)], months=12.0), RULES)
    scores = [
        _scored(cells[0], detected=9, documents=[1], upper=1.2),
        _scored(cells[1], detected=5, documents=[4], upper=0.4),
        _scored(cells[2], detected=5, documents=[3], upper=0.8),
        _scored(cells[3], detected=5, documents=[1], upper=None),
    ]
    assert chosen_cell(part, scores, budget=1.0, rules=RULES) == cells[2]
    assert chosen_cell(part, scores, budget=0.5, rules=RULES) == cells[1]
    assert chosen_cell(part, scores, budget=0.1, rules=RULES) is None


def test_a_cell_whose_alarms_break_the_budget_that_its_spells_keep_is_passed_over() -> None:
    """One spell with a second signal while it lasts: two alarms, of which the bound is 6.3 a user-month, not 4.7."""
    seen = ((90, 0), (5, 0), (5, 20))
    rows = [
        asked(n, actor="u", kind="benign", minutes=5 * n, queries=load, **{**HARMLESS, "sensitive": sensitive})
        for n, (load, sensitive) in enumerate(seen)
    ]
    part = part_of(_replayed([_fast("a"), actor_of(rows)]), RULES)
    cells = [cell_of(RULES.settings)]
    scores = scores_of(part, cells, rules=RULES)
    assert scores[0].upper == pytest.approx(4.7439, abs=1e-4)
    assert chosen_cell(part, scores, budget=5.0, rules=RULES) is None
    assert chosen_cell(part, scores, budget=7.0, rules=RULES) == cells[0]


def test_a_budget_binds_the_worst_profile_and_not_the_mean_of_all() -> None:
    quiet = [_user(f"q{n}", peak=10) for n in range(9)]
    busy = _user("busy", peak=90)
    writer = Actor(name="busy", kind="benign", profile="writer", lang=None, asked=busy.asked)
    part = part_of(_replayed([_fast("a"), *quiet, writer]), RULES)
    assert scores_of(part, [cell_of(RULES.settings)], rules=RULES)[0].upper == pytest.approx(4.7439, abs=1e-4)


def test_a_budget_that_no_setting_keeps_is_said_so() -> None:
    part = part_of(_replayed([_fast("a"), _user("u", peak=90)]), RULES)
    table = recommendation_table([part], {0.1: None, 5.0: cell_of(RULES.settings)}, rules=RULES)
    assert not _row(table, budget=0.1)["chosen"]
    chosen = _row(table, budget=5.0)
    assert (chosen["n_detected"], chosen["n_attackers"], chosen["n_alarms"], chosen["part"]) == (1, 1, 1, "check")


def test_what_throttling_saves_is_the_share_of_documents_that_were_not_delivered() -> None:
    actor = _fast("a", queries=4)
    rows = [
        DeliveredQuery(
            response="truncate",
            query_id=one.event.query_id,
            actor="a",
            time=one.event.time,
            answered=one.event.time,
            throttled=n >= 2,
            delivered=one.event.documents[: 2 if n < 2 else 1],
            target=one.event.target,
        )
        for n, one in enumerate(actor.asked)
    ]
    row = _row(throttling_table(_replayed([actor, _slow("b")]), rows, confidence=0.95), profile="sweeper")
    assert (row["n_attackers"], row["n_not_evaluated"], row["n_throttled"]) == (2, 1, 1)
    assert (row["documents_open_median"], row["documents_closed_median"], row["saved_share_median"]) == (8, 6, 0.25)
