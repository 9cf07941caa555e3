"""The monitor's page says what is missing, what is not detected, and shows free text as text."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from replay_sample import actor_of, asked

from mragaudit.config.monitor_section import Sweep
from mragaudit.monitor.evaluation.alarms import collections_table, false_alarms_table
from mragaudit.monitor.evaluation.detection import detection_table, languages_table
from mragaudit.monitor.evaluation.replayed import Replayed, Rules
from mragaudit.monitor.evaluation.thresholds import (
    cells_of,
    curves_table,
    part_of,
    recommendation_table,
    scores_of,
    sweep_table,
)
from mragaudit.monitor.evaluation.throttling import throttling_table
from mragaudit.monitor.rejudge import Actor
from mragaudit.monitor.settings import MonitorSettings, RoleLimits
from mragaudit.report.monitor_figures import Timeline
from mragaudit.report.monitor_page import MonitorReport, render_monitor
from mragaudit.report.monitor_views import as_decimal, missed, recommendation_view, roles_needed

RULES = Rules(settings=MonitorSettings(), roles={"reader": RoleLimits(max_queries=200)}, confidence=0.95)
SMALL = Sweep(max_queries=(60,), coverage_share=(0.8,), sensitivity_share=(0.3,), throttle_at=(0.7,))


def _replayed(*, size: int | None, months: float = 6.0) -> Replayed:
    attacker = actor_of([asked(n, minutes=n, documents=[f"{n}"], target=f"{n}", size=size) for n in range(4)])
    busy = actor_of([asked(n, actor="u", kind="benign", minutes=n, queries=90, size=size) for n in range(3)])
    return Replayed(part="check", actors=[attacker, busy], months_per_user=months)


def _report(replayed: Replayed, *, reason: str = "why") -> MonitorReport:
    part = part_of(replayed, RULES)
    tables = {
        "detection": detection_table([replayed], rules=RULES),
        "false_alarms": false_alarms_table([replayed], chosen={}, rules=RULES),
        "collections": collections_table([replayed], rules=RULES),
        "sweep": sweep_table([part], [scores_of(part, cells_of(SMALL, RULES.settings), rules=RULES)], rules=RULES),
        "curves": curves_table([part], rules=RULES),
        "recommendation": recommendation_table([part], {0.1: None}, rules=RULES),
        "throttling": throttling_table(replayed, [], confidence=0.95),
        "languages": languages_table([replayed], languages=("en",), rules=RULES),
    }
    return MonitorReport(
        run="r<1>",
        tables=tables,
        confidence=0.95,
        timelines=[_timeline(replayed.actors)],
        settings_summary=[("volume", "50")],
        profiles=[("reader", reason)],
        roles=sorted(RULES.roles),
    )


def _timeline(actors: Sequence[Actor]) -> Timeline:
    n = len(actors[0].asked)
    flat = {name: np.full(n, 0.2) for name in ("volume", "coverage", "sensitivity", "composite")}
    return Timeline(
        title="sweep",
        hours=np.arange(n, dtype=np.float64),
        scores=flat,
        throttle_at=0.7,
        throttled=np.zeros(n, dtype=bool),
        documents=np.arange(n),
    )


def test_the_page_is_whole_loads_nothing_and_escapes_free_text() -> None:
    page = render_monitor(_report(_replayed(size=100), reason="<script>alert(1)</script>"))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "r&lt;1&gt;" in page
    assert page.count("data:image/svg+xml;base64,") == 2  # timelines and curves; no sweep, so no languages
    assert 'src="http' not in page


def test_the_same_tables_give_the_same_page() -> None:
    assert render_monitor(_report(_replayed(size=100))) == render_monitor(_report(_replayed(size=100)))


def test_a_signal_that_nothing_could_evaluate_is_named() -> None:
    page = render_monitor(_report(_replayed(size=None)))
    assert "coverage was never evaluated" in page
    assert "sensitivity was never evaluated" in page
    assert "volume was never evaluated" not in page


def test_an_attacker_who_is_never_throttled_is_said_to_be_missed() -> None:
    sentences = missed(detection_table([_replayed(size=100)], rules=RULES))
    assert sentences == [
        "sweeper (en): 0 of 1 throttled (two-sided 95 % Wilson 0.000 to 0.793), 4.0 documents taken (median)."
    ]


def test_a_profile_that_needs_its_role_is_named_with_both_figures() -> None:
    """Alarms of a busy user: throttled at the first query, which alerts; nothing more within three minutes."""
    table = false_alarms_table([_replayed(size=100, months=4.0)], chosen={}, rules=RULES)
    assert roles_needed(table, roles=RULES.roles) == [
        "reader: without a role 1 alarm in 4.0 user-months (upper bound 1.19); "
        "with its role 0 in 4.0 (upper bound 0.75), below 1."
    ]


def test_too_few_user_months_are_not_blamed_on_the_profile() -> None:
    quiet = actor_of([asked(0, actor="u", kind="benign", minutes=0)])
    table = false_alarms_table([Replayed(part="check", actors=[quiet], months_per_user=1.0)], chosen={}, rules=RULES)
    assert roles_needed(table, roles={}) == [
        "reader: no alarm in 1.0 user-months, which are too few for an upper bound below 1 (3.00)."
    ]


def test_a_profile_without_a_role_that_alarms_is_said_to_have_none() -> None:
    table = false_alarms_table([_replayed(size=100, months=1.0)], chosen={}, rules=RULES)
    assert roles_needed(table, roles={}) == [
        "reader: 1 alarm in 1.0 user-months (upper bound 4.74), and no role is given for it."
    ]


def test_false_alarms_at_chosen_thresholds_are_named_by_their_budget() -> None:
    replayed = _replayed(size=100)
    report = _report(replayed)
    alarms = false_alarms_table([replayed], chosen={"budget 0.3": MonitorSettings()}, rules=RULES)
    page = render_monitor(msgspec.structs.replace(report, tables={**report.tables, "false_alarms": alarms}))
    assert "False alarms by profile at the thresholds chosen for budget 0.3" in page


def test_a_budget_that_nothing_keeps_is_a_row_without_numbers() -> None:
    part = part_of(_replayed(size=100), RULES)
    view = recommendation_view(recommendation_table([part], {0.1: None}, rules=RULES))
    cells = [cell.text for cell in view.rows[0]]
    assert cells[:3] == ["0.10", "development", "no setting keeps it"]
    assert set(cells[3:]) == {"—"}


@pytest.mark.parametrize(("value", "shown"), [(float("inf"), "never"), (float("nan"), "—"), (0.0, "0.0")])
def test_unknown_and_never_are_not_zero(value: float, shown: str) -> None:
    assert as_decimal(value, digits=1) == shown


def test_every_interval_says_the_configured_level() -> None:
    page = render_monitor(msgspec.structs.replace(_report(_replayed(size=100)), confidence=0.9))
    assert "one-sided 90 % exact Poisson" in page
    assert "95 %" not in page
