"""A query as the host reports it: what is taken, and as what."""

from __future__ import annotations

from typing import Any

import pytest

from mragaudit.errors import DataError
from mragaudit.monitor.queries import Query, RetrievedDocument, checked_query
from mragaudit.monitor.settings import MonitorSettings

SETTINGS = MonitorSettings.model_validate({"roles": {"support": {"max_queries": 100}}})


def checked(documents: Any = (), **given: Any) -> Query:
    query = {"user": "ann", "query_id": "q", "collection": "kb"} | given
    return checked_query(documents=documents, settings=SETTINGS, **query)


def test_documents_are_grouped_by_level() -> None:
    found = checked([("a", "public"), ("b", "restricted"), RetrievedDocument("c", "public")])
    assert {level: list(ids) for level, ids in found.by_level.items()} == {"public": ["a", "c"], "restricted": ["b"]}
    assert found.unknown_levels == ()


def test_a_document_twice_counts_once_and_at_its_higher_level() -> None:
    found = checked([("a", "public"), ("a", "confidential"), ("a", "internal"), ("b", "public"), ("b", "public")])
    assert {level: list(ids) for level, ids in found.by_level.items()} == {"confidential": ["a"], "public": ["b"]}


def test_an_unknown_level_is_the_highest_and_is_named_once() -> None:
    found = checked([("a", "secret"), ("b", "secret"), ("c", None), ("d", "public")])
    assert list(found.by_level["restricted"]) == ["a", "b", "c"]
    assert found.unknown_levels == ("secret", "None")


def test_an_unknown_role_is_no_role() -> None:
    assert checked(role="support").role == "support"
    assert checked(role="admin").role is None
    assert checked(role=None).role is None


def test_documents_may_come_from_any_iterable() -> None:
    assert list(checked((name, "public") for name in "ab").by_level["public"]) == ["a", "b"]
    assert list(checked([["a", "public"]]).by_level["public"]) == ["a"]


def test_no_documents_are_a_query_all_the_same() -> None:
    assert checked([]).by_level == {}


@pytest.mark.parametrize("count", [1_000, 1_001])
def test_documents_are_taken_up_to_their_limit(count: int) -> None:
    documents = [(f"d{number}", "public") for number in range(count)]
    if count == 1_000:
        assert len(checked(documents).by_level["public"]) == count
        return
    with pytest.raises(DataError, match=r"1,001 retrieved ids in one query; 1,000 are the most"):
        checked(documents)


@pytest.mark.parametrize("user", ["x" * 16_384, "é" * 8_192])
def test_an_id_is_taken_up_to_its_limit_in_bytes(user: str) -> None:
    assert checked(user=user).user == user


@pytest.mark.parametrize("when", [0, 0.0, 1_700_000_000, 2**32])
def test_a_time_is_unix_seconds(when: float) -> None:
    assert checked(time=when).time == when


@pytest.mark.parametrize("when", [-0.001, float("nan"), float("inf"), 2**32 + 1, "1", [1]])
def test_anything_else_is_no_time(when: Any) -> None:
    with pytest.raises(DataError, match="must be Unix seconds"):
        checked(time=when)


def test_what_is_refused_is_not_repeated_in_the_message() -> None:
    """It may be personal, and as long as its sender likes."""
    with pytest.raises(DataError) as caught:
        checked([{"name": "Ann Smith", "text": "x" * 100_000}])
    assert str(caught.value) == "a retrieved document is dict; it must be a pair (id, level)"
