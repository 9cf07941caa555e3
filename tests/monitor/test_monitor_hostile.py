"""Hostile input: refused with a reason, or taken as the opaque text that it is; never another user's keys."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monitor_drivers import Driver, ids, reading

from mragaudit.monitor.calls import RecordCalls, mark_call
from mragaudit.monitor.holds import hold_call
from mragaudit.monitor.keys import UserKeys, encode_name, secret_key, user_hash
from mragaudit.monitor.queries import checked_query
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.sizes import own_call

pytestmark = pytest.mark.monitor
Drive = Callable[..., Driver]

HOSTILE_TEXT = [
    "a:b",
    "a:b:c",
    "{",
    "}",
    "{a}",
    "{}",
    "u.{x}:vol",
    "line\nbreak",
    "\r\nDEL *\r\n",
    "nul\0byte",
    "\x1b[31mred",
    " ",
    "  a",
    "a",
    "A",
    "é",
    "e\u0301",
    "中文",
    "\u202eright to left",
    "\U0001f600" * 50,
    "+",
    "d:x",
    "h:x",
    "n.kb",
    "h.kb",
    "*",
    "?[a-z]",
    "../../etc/passwd",
    "'; return redis.call('FLUSHALL') --",
    "x" * 10_000,
    "x" * 9_999 + "y",
]
REFUSED = [
    ("", "empty"),
    (None, "NoneType"),
    (7, "int"),
    (b"bytes", "bytes"),
    (["a"], "list"),
    ("\ud800", "lone surrogate"),
    ("a\udfff", "lone surrogate"),
    ("x" * 16_385, "16385 bytes long; 16384 are the most"),
    ("é" * 8_193, "16386 bytes long"),
]


@pytest.mark.parametrize("field", ["user", "query_id", "collection", "tenant"])
@pytest.mark.parametrize(("value", "reason"), REFUSED, ids=[str(reason) for _, reason in REFUSED])
def test_an_id_that_is_no_text_is_refused_with_the_reason(
    make_driver: Drive, field: str, value: Any, reason: str
) -> None:
    one = make_driver()
    query = {"user": "ann", "query_id": "q", "collection": "kb", "documents": [], "tenant": "default", field: value}
    decision = one.record(**query)
    assert decision.throttled
    assert decision.problem is not None
    assert decision.problem.startswith(f"refused: {field} is ")
    assert reason in decision.problem
    assert one.sink.kinds() == ["input"]
    assert one.monitor.counts.problems == {"input": 1}


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ([("", "public")], "a document id is empty"),
        ([(None, "public")], "a document id is NoneType"),
        ([("\ud800", "public")], "lone surrogate"),
        ([("d" * 20_000, "public")], "20000 bytes long"),
        (["doc-1"], "a retrieved document is str; it must be a pair"),
        (["ab"], "a retrieved document is str; it must be a pair"),
        ([("a", "public", "more")], "must be a pair"),
        ([None], "a retrieved document is NoneType"),
        ("doc-1", "the documents are str"),
        (None, "the documents are NoneType"),
        (7, "the documents are int"),
    ],
)
def test_documents_that_are_no_pairs_are_refused_with_the_reason(
    make_driver: Drive, documents: Any, reason: str
) -> None:
    one = make_driver()
    decision = one.record(user="ann", query_id="q", collection="kb", documents=documents)
    assert decision.throttled
    assert reason in (decision.problem or "")


@pytest.mark.parametrize("when", [float("nan"), float("inf"), -1.0, "now", 1e30])
def test_a_time_that_is_none_is_refused(make_driver: Drive, when: Any) -> None:
    one = make_driver()
    decision = one.record(user="ann", query_id="q", collection="kb", documents=[], time=when)
    assert decision.throttled
    assert "must be Unix seconds" in (decision.problem or "")


def test_a_million_ids_are_refused_at_once(make_driver: Drive) -> None:
    one = make_driver()
    million = [(f"doc-{number}", "public") for number in range(1_000_000)]
    started = time.perf_counter()
    decision = one.record(user="ann", query_id="q", collection="kb", documents=million)
    assert time.perf_counter() - started < 0.5
    assert decision.throttled
    expected = "refused: 1,000,000 retrieved ids in one query; 1,000 are the most (limits.documents_per_query)"
    assert decision.problem == expected


def test_an_endless_stream_of_ids_is_refused_without_being_read(make_driver: Drive) -> None:
    one = make_driver()
    read = itertools.count()
    endless: Iterator[tuple[str, str]] = ((f"doc-{next(read)}", "public") for _ in itertools.count())
    decision = one.record(user="ann", query_id="q", collection="kb", documents=endless)
    assert "more than 1,000 retrieved ids" in (decision.problem or "")
    assert next(read) == 1_001


def test_as_many_ids_as_are_allowed_are_taken(drive: Drive) -> None:
    one = drive(limits={"documents_per_query": 2_000})
    decision = one.ask(ids(1, 2_000), level="restricted", at=0)
    assert (decision.problem, reading(decision, "coverage").count) == (None, 2_000)
    many = one.ask(ids(1, 2_000), user="bob", at=0)
    assert reading(many, "coverage").count == 2_000


def test_documents_that_raise_while_they_are_read_raise_nothing_in_the_served_query(make_driver: Drive) -> None:
    def broken() -> Iterator[tuple[str, str]]:
        yield "doc", "public"
        raise RuntimeError("a fault of the host")

    one = make_driver(store={"on_failure": "closed"})
    decision = one.record(user="ann", query_id="q", collection="kb", documents=broken())
    assert decision.throttled
    assert "internal fault RuntimeError" in (decision.problem or "")
    assert one.monitor.counts.problems == {"internal": 1}


@pytest.mark.parametrize("level", [None, 3, ["restricted"], "", "RESTRICTED", "x" * 10_000, "a=1,b", "l:public"])
def test_a_level_that_the_settings_do_not_list_counts_as_the_highest(make_driver: Drive, level: Any) -> None:
    one = make_driver()
    decision = one.record(user="ann", query_id="q", collection="kb", documents=[("doc", level)])
    assert decision.problem is None
    assert reading(decision, "sensitivity").count == 1
    assert one.monitor.counts.unknown_levels == 1


def test_hostile_ids_are_taken_as_they_are_and_kept_apart(drive: Drive) -> None:
    one = drive()
    for rounds in (1, 2):
        for number, text in enumerate(HOSTILE_TEXT):
            query_id = f"{text} {rounds}"[-5_000:]
            decision = one.record(
                user=text, query_id=query_id, collection=text, tenant=text, documents=[(text, "public")] * 2
            )
            assert decision.problem is None, number
            assert reading(decision, "volume").count == rounds, text
            assert reading(decision, "coverage").count == 1, text
    assert one.monitor.counts.duplicates == 0


def test_documents_with_names_like_our_own_encodings_stay_distinct(drive: Drive) -> None:
    one = drive()
    names = [*HOSTILE_TEXT, "d:d:x", "h:h:x", "x" * 64, "x" * 65, "é" * 32, "é" * 33]
    decision = one.ask(names, at=0, level="restricted")
    assert reading(decision, "coverage").count == len(names)
    assert reading(decision, "sensitivity").capped_count == len(names)
    assert one.do("user_added", "ann", "kb", doc_ids=names) == len(names)
    assert one.do("user_removed", "ann", "kb", doc_ids=["+"]) == len(names) - 1


def test_a_user_who_adds_a_document_named_plus_does_not_disturb_the_count_beyond_the_bound(drive: Drive) -> None:
    one = drive(limits={"own_documents": 100})
    assert one.do("user_added", "ann", "kb", doc_ids=[f"mine {number}" for number in range(100)]) == 100
    assert one.do("user_added", "ann", "kb", doc_ids=["+", "more"]) == 102
    one.do("set_size", "kb", 200)
    decision = one.ask(ids(1, 20), at=0)
    assert reading(decision, "coverage").total == 98
    assert one.do("user_removed", "ann", "kb", doc_ids=["+", "more", "mine 1"]) == 99


names = st.text(min_size=1, max_size=40).filter(lambda text: text.isascii() or _encodable(text))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@settings(settings.get_profile("monitor"), max_examples=150)
@given(st.tuples(names, names), st.tuples(names, names))
def test_no_two_users_ever_share_a_hash(one: tuple[str, str], other: tuple[str, str]) -> None:
    hashes = [user_hash(b"secret", tenant=tenant, user=user) for tenant, user in (one, other)]
    assert (hashes[0] == hashes[1]) == (one == other)


@settings(settings.get_profile("monitor"), max_examples=150)
@given(names, names)
def test_no_two_collections_ever_share_a_key(one: str, other: str) -> None:
    keys = UserKeys("p", "hash")
    found = [keys.of_collection("cov", encode_name(name)) for name in (one, other)]
    assert (found[0] == found[1]) == (one == other)
    assert all(key.count("{") == key.count("}") == 1 for key in found)
    assert all(key.isascii() and key.isprintable() for key in found)


@pytest.mark.parametrize("mode", ["exact", "hyperloglog"])
@pytest.mark.parametrize("text", [*HOSTILE_TEXT, "kb"], ids=lambda text: ascii(text)[:24])
def test_all_keys_of_one_call_lie_in_one_slot_of_a_cluster(text: str, mode: str) -> None:
    from redis.crc import key_slot  # noqa: PLC0415 - needs the extra `monitor`

    given_settings = MonitorSettings.model_validate({"coverage": {"mode": mode}})
    query = checked_query(
        user=text, query_id="q", collection=text, tenant=text, documents=[(text, "public")], settings=given_settings
    )
    hashed = user_hash(b"secret", tenant=text, user=text)
    calls = RecordCalls(given_settings, cluster=True).calls(query, hashed)
    assert len(calls) == 2
    own = own_call(given_settings, user_hash=hashed, collection=text, doc_ids=[text], added=True)
    calls += [own, hold_call(given_settings, user_hash=hashed, request_id=text)]
    for call in calls:
        assert len({key_slot(key.encode()) for key in call.keys}) == 1
    user_keys = [*calls[0].keys, *calls[2].keys, *calls[3].keys]
    assert len({key_slot(key.encode()) for key in user_keys}) == 1
    everything = [key for call in calls for key in call.keys] + [secret_key("mragaudit")]
    assert all(key.isascii() and key.isprintable() and " " not in key for key in everything)


def test_a_hold_for_an_id_that_was_refused_is_no_crash(drive: Drive) -> None:
    """The front asks for a place for every throttled request, also for one whose user was refused."""
    one = drive()
    for user in ("", "\ud800", None, 7):
        assert one.do("hold", user, "request") in {True, False}
        one.do("release", user, "request")
    assert one.do("hold", "ann", "\ud800") in {True, False}


def test_no_id_of_a_user_stands_in_the_store_in_plain_text(drive: Drive) -> None:
    one = drive(volume={"max_queries": 1})
    user = "ann.smith@example.org"
    for number in range(4):
        one.ask(ids(1, 30), user=user, at=number, level="restricted")
    stored = [one.direct.dump(key) for key in one.stored_keys()]
    assert stored
    assert not [value for value in stored if b"ann.smith" in value]
    assert not [key for key in one.stored_keys() if "ann.smith" in key]


def test_mark_calls_keep_to_the_users_slot() -> None:
    from redis.crc import key_slot  # noqa: PLC0415

    from mragaudit.monitor.calls import Mark  # noqa: PLC0415

    keys = UserKeys("p", "hash")
    mark = Mark(change="enter", flag_day=True, claims={"volume": 1.0}, time=1.0, lifetime_seconds=1.0)
    call = mark_call(mark, state=keys.key("state"), baseline=keys.key("base"))
    assert len({key_slot(key.encode()) for key in call.keys}) == 1
