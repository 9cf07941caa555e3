"""Attackers ask the audit's own trials, each in its own order and at its own pace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from replay_sample import LANGUAGES, SIZE, doc, material, profiles

from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.traffic.attackers import attack_events
from mragaudit.records.replay import QueryEvent

SETTINGS = MonitorSettings()
DAY = 86_400.0


def _events(seed: int = 1) -> list[QueryEvent]:
    return list(
        attack_events(material(), profiles(), settings=SETTINGS, languages=LANGUAGES, seed=seed, count=1, days=30)
    )


@pytest.fixture(scope="module")
def by_profile() -> dict[tuple[str, str | None], list[QueryEvent]]:
    found: dict[tuple[str, str | None], list[QueryEvent]] = {}
    for event in _events():
        found.setdefault((event.profile, event.lang), []).append(event)
    return found


def _within(times: list[float], seconds: float) -> Iterator[int]:
    for last in times:
        yield sum(last - seconds <= one <= last for one in times)


def test_every_attack_of_the_issue_is_there(by_profile: dict[tuple[str, str | None], list[QueryEvent]]) -> None:
    assert {name for name, _ in by_profile} == {
        *("hammering", "low_and_slow", "patient_sweep", "confidential_pulls", "one_shot_pull", "language_sweep"),
        *("sybils_2", "sybils_4", "sybils_8", "mimicry", "under_volume", "under_coverage", "under_sensitivity"),
        *("dilution_told", "dilution_untold"),
    }


def test_a_sweep_in_swahili_differs_from_english_in_what_it_retrieves_alone(
    by_profile: dict[tuple[str, str | None], list[QueryEvent]],
) -> None:
    english, swahili = (by_profile["low_and_slow", lang] for lang in LANGUAGES)
    assert [one.target for one in english] == [one.target for one in swahili]
    assert [one.time for one in english] == [one.time for one in swahili]
    missed = [one.target for one in swahili if one.target not in {d.doc_id for d in one.documents}]
    assert sorted(missed) == [doc(n) for n in range(0, SIZE, 4)]


def test_hammering_asks_more_in_an_hour_than_alerts(
    by_profile: dict[tuple[str, str | None], list[QueryEvent]],
) -> None:
    times = [one.time for one in by_profile["hammering", "en"]]
    assert max(_within(times, 3_600.0)) > SETTINGS.volume.max_queries


def test_just_under_the_volume_threshold_never_exceeds_it_and_reaches_it(
    by_profile: dict[tuple[str, str | None], list[QueryEvent]],
) -> None:
    times = [one.time for one in by_profile["under_volume", "en"]]
    assert max(_within(times, 3_600.0)) == min(SIZE, SETTINGS.volume.max_queries)


def test_just_under_the_coverage_threshold_no_window_holds_more_than_the_share(
    by_profile: dict[tuple[str, str | None], list[QueryEvent]],
) -> None:
    events = by_profile["under_coverage", "en"]
    for last in events:
        window = [one for one in events if last.time - 7 * DAY <= one.time <= last.time]
        assert len({d.doc_id for one in window for d in one.documents}) <= 0.8 * SIZE
    assert {d.doc_id for one in events for d in one.documents} == {doc(n) for n in range(SIZE)}


def test_just_under_the_sensitivity_threshold_no_counted_window_exceeds_the_share(
    by_profile: dict[tuple[str, str | None], list[QueryEvent]],
) -> None:
    events = by_profile["under_sensitivity", "en"]
    for last in events:
        window = [d for one in events if last.time - DAY <= one.time <= last.time for d in one.documents]
        sensitive = sum(d.level == "confidential" for d in window)
        assert len(window) < SETTINGS.min_documents or sensitive <= 0.3 * len(window)


def test_confidential_pulls_ask_for_every_sensitive_document_once(
    by_profile: dict[tuple[str, str | None], list[QueryEvent]],
) -> None:
    asked = Counter(one.target for one in by_profile["confidential_pulls", "en"])
    assert asked == Counter(doc(n) for n in range(0, SIZE, 5))


def test_sybils_share_a_sweep_among_their_accounts(
    by_profile: dict[tuple[str, str | None], list[QueryEvent]],
) -> None:
    events = by_profile["sybils_4", "en"]
    assert Counter(Counter(one.user for one in events).values()) == {SIZE // 4: 4}
    assert len({one.group for one in events}) == len({one.actor for one in events}) == 1


def test_dilution_doubles_the_collection_and_only_one_of_the_two_is_told(
    by_profile: dict[tuple[str, str | None], list[QueryEvent]],
) -> None:
    told, untold = by_profile["dilution_told", "en"], by_profile["dilution_untold", "en"]
    assert {one.collection_size for one in (*told, *untold)} == {2 * SIZE}
    assert len(told[0].added) == SIZE
    assert not any(one.added for one in (*told[1:], *untold))
    assert [one.documents for one in told] == [one.documents for one in untold]


def test_a_language_sweep_changes_its_language_with_every_document(
    by_profile: dict[tuple[str, str | None], list[QueryEvent]],
) -> None:
    trials = material().trials
    for number, one in enumerate(by_profile["language_sweep", "mixed"]):
        lang = LANGUAGES[number % 2]
        assert tuple(d.doc_id for d in one.documents) == trials[lang, one.target or ""].documents


def test_a_seed_gives_the_same_traffic_again_and_another_seed_another() -> None:
    assert _events() == _events()
    assert [one.target for one in _events()] != [one.target for one in _events(seed=2)]
