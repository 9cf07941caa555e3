"""A lost, doubled or invented trial stops the run with its id."""

from __future__ import annotations

import pytest

from mragaudit.errors import ConfigError, GateError
from mragaudit.stages.gates import require_enough_documents, require_same_ids


def _error(expected: list[str], actual: list[str]) -> str:
    with pytest.raises(GateError) as caught:
        require_same_ids(expected=expected, actual=actual, where="results/x/generations")
    return str(caught.value)


def test_the_same_ids_in_any_order_pass() -> None:
    require_same_ids(expected=["a", "b"], actual=["b", "a"], where="x")
    require_same_ids(expected=[], actual=[], where="x")


def test_missing_trials_are_counted_and_named() -> None:
    assert _error(["c", "a", "b"], ["b"]) == (
        "results/x/generations: 2 of 3 trials are missing: a, c; run the stage that writes this file again (--forcerun)"
    )


def test_of_many_missing_trials_five_are_named() -> None:
    assert "7 of 7 trials are missing: a, b, c, d, e and 2 more;" in _error(list("abcdefg"), [])


def test_trials_from_nowhere_are_named() -> None:
    assert "1 trials belong to no earlier stage: z;" in _error(["a"], ["a", "z"])


def test_doubled_trials_are_named() -> None:
    assert "trials stand twice: a;" in _error(["a", "b"], ["a", "b", "a"])


def test_missing_trials_are_named_before_those_from_nowhere() -> None:
    assert "missing: a" in _error(["a"], ["z"])


def test_as_many_documents_may_be_retrieved_as_there_are() -> None:
    require_enough_documents(3, k=3)
    with pytest.raises(ConfigError, match=r'config key "retrieve\.k" is 4 and the corpus has 3 documents'):
        require_enough_documents(3, k=4)
