"""A server that fails: what is tried again, what is not, and that nothing is lost or counted twice."""

from __future__ import annotations

import socket
import time
from collections import Counter
from email.utils import formatdate
from pathlib import Path

import pytest
from endpoint_requests import Make, ask, asks, choice, texts
from fake_openai import FakeServer, Fault, Seen, digest_words, random_faults

from mragaudit.calls import Caller
from mragaudit.errors import BackendError
from mragaudit.journal import Journal, recover
from mragaudit.llm import http_client
from mragaudit.llm.openai_http import OpenAIHttpBackend
from mragaudit.protocols import Completion, Failure, OptionScores

pytestmark = pytest.mark.http

LOST = {
    "too many requests": Fault(status=429),
    "wait in seconds": Fault(status=429, headers={"Retry-After": "0"}),
    "wait until a date": Fault(status=503, headers={"Retry-After": "Mon, 30 Nov 2020 12:00:00 GMT"}),
    "server error": Fault(status=500),
    "bad gateway in HTML": Fault(status=502, body="<h1>Bad Gateway</h1>"),
    "truncated JSON": Fault(cut_bytes=9),
    "dropped connection": Fault(drop=True),
    "dropped within the body": Fault(break_off=True),
    "empty choices": Fault(body='{"choices": [], "usage": {"prompt_tokens": 1}}'),
    "error with status 200": Fault(body='{"error": {"message": "overloaded"}}'),
}
REASONS = {
    "too many requests": "HTTP 429: out of order (2 of 2 attempts)",
    "server error": "HTTP 500: out of order (2 of 2 attempts)",
    "truncated JSON": "the answer is cut short or not in the form of the API (2 of 2 attempts)",
    "dropped connection": "the connection was lost (ServerDisconnectedError) (2 of 2 attempts)",
    "dropped within the body": "the connection was lost (ClientPayloadError) (2 of 2 attempts)",
    "empty choices": "the answer has no choices (2 of 2 attempts)",
}


def first(count: int, fault: Fault) -> FakeServer:
    """Return a server whose first requests fail."""
    return FakeServer(fault=lambda number, _seen: fault if number <= count else None)


@pytest.mark.parametrize("kind", LOST)
def test_a_lost_call_is_tried_again_and_answered(kind: str, make: Make) -> None:
    with first(2, LOST[kind]) as server:
        found = texts(make(server.base_url, attempts=3).generate(asks(1)))
        assert found == {0: digest_words("Rules.\n\nQuestion 0?")}
        assert len(server.seen) == 3


@pytest.mark.parametrize("kind", REASONS)
def test_a_call_lost_every_time_is_a_failure_that_says_why(kind: str, make: Make) -> None:
    with FakeServer(fault=lambda _number, _seen: LOST[kind]) as server:
        backend = make(server.base_url, attempts=2)
        assert list(backend.generate(asks(1))) == [(0, Failure(reason=REASONS[kind]))]
        assert len(server.seen) == 2
        assert backend.meter.calls == 2


def test_a_slow_body_is_given_up_after_the_timeout_and_asked_for_again(make: Make) -> None:
    with first(1, Fault(sleep_seconds=30.0)) as server:
        assert len(texts(make(server.base_url, attempts=2, timeout_seconds=0.5).generate(asks(1)))) == 1
    with FakeServer(fault=lambda _number, _seen: Fault(sleep_seconds=30.0)) as server:
        [(_, lost)] = make(server.base_url, attempts=1, timeout_seconds=0.3).generate(asks(1))
    assert lost == Failure(reason="no answer within 0.3 s (1 of 1 attempts)")


@pytest.mark.parametrize("status", [200, 500])
def test_a_small_reply_that_unpacks_to_too_much_is_a_failure_and_not_asked_for_again(status: int, make: Make) -> None:
    bomb = Fault(status=status, body=" " * (http_client.LARGEST_REPLY_BYTES + 1), packed=True)
    with first(1, bomb) as server:
        backend = make(server.base_url, attempts=3)
        assert list(backend.generate(asks(1))) == [
            (0, Failure(reason="the reply has more than 64 MiB (1 of 3 attempts)"))
        ]
        assert len(server.seen) == 1
        assert len(texts(backend.generate(asks(1)))) == 1


def test_a_packed_answer_of_usual_size_is_read(make: Make) -> None:
    with first(1, Fault(packed=True)) as server:
        assert texts(make(server.base_url).generate(asks(1))) == {0: digest_words("Rules.\n\nQuestion 0?")}
        assert len(server.seen) == 1


def test_options_are_asked_for_again_too(make: Make) -> None:
    with first(1, LOST["server error"]) as server:
        [(_, found)] = make(server.base_url).choose([choice("Allowed?")])
        assert isinstance(found, OptionScores)
        assert len(server.seen) == 3
    with FakeServer(fault=lambda _number, seen: LOST["server error"] if "ALLOW" in seen.text else None) as server:
        [(_, found)] = make(server.base_url, attempts=2).choose([choice("?")])
        assert isinstance(found, Failure)


def test_what_a_content_filter_withholds_is_not_asked_for_again(make: Make) -> None:
    withheld = '{"choices": [{"text": "", "finish_reason": "content_filter"}], "usage": {"prompt_tokens": 1}}'
    with FakeServer(fault=lambda _number, _seen: Fault(body=withheld)) as server:
        [(_, found)] = make(server.base_url, attempts=4).generate(asks(1))
        assert found == Failure(reason="the endpoint's content filter withheld the answer (1 of 4 attempts)")
        assert len(server.seen) == 1


def test_a_prompt_that_a_content_filter_refuses_is_not_evaluated_and_the_others_are(make: Make) -> None:
    refused = Fault(status=400, body='{"error": {"code": "content_filter", "message": "filtered"}}')
    with FakeServer(fault=lambda _number, seen: refused if "1?" in seen.text else None) as server:
        found = dict(make(server.base_url, attempts=4).generate(asks(3)))
        assert found[1] == Failure(reason="the endpoint's content filter refused the prompt (1 of 4 attempts)")
        assert all(isinstance(found[position], Completion) for position in (0, 2))
        assert len(server.seen) == 3


def test_a_wait_that_cannot_be_read_is_a_lost_call_like_any_other(make: Make) -> None:
    fault = Fault(status=429, headers={"Retry-After": "Mon, 30 Nov 99999999999 12:00:00 GMT"})
    with first(1, fault) as server:
        assert len(texts(make(server.base_url).generate(asks(1)))) == 1


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_all_calls_wait_as_long_as_the_server_asks(form: str, make: Make) -> None:
    arrived: list[float] = []

    def fault(number: int, _seen: Seen) -> Fault | None:
        arrived.append(time.monotonic())
        # Dates have whole seconds: 2 s ahead is at least 1 s.
        wait = "1" if form == "seconds" else formatdate(time.time() + 2, usegmt=True)
        return Fault(status=429, headers={"Retry-After": wait}) if number == 1 else None

    with FakeServer(fault=fault) as server:
        assert len(texts(make(server.base_url, concurrency=1).generate(asks(3)))) == 3
    assert len(arrived) == 4
    assert arrived[1] - arrived[0] >= 0.99


def test_a_wait_that_is_too_long_ends_the_run_and_keeps_what_is_finished(make: Make) -> None:
    fault = Fault(status=429, headers={"Retry-After": "3600"})
    with FakeServer(fault=lambda number, _seen: fault if number == 3 else None) as server:
        running = make(server.base_url, concurrency=1).generate(asks(5))
        assert [next(running)[0], next(running)[0]] == [0, 1]
        with pytest.raises(BackendError, match=r"asks to wait 3600 s, more than 600; finished calls are kept"):
            next(running)
        assert len(server.seen) == 3


def test_a_redirection_is_not_followed(make: Make) -> None:
    fault = Fault(status=307, headers={"Location": "http://192.0.2.1/v1/completions"})
    with FakeServer(fault=lambda _number, _seen: fault) as server, pytest.raises(BackendError, match="not followed"):
        list(make(server.base_url).generate(asks(1)))


def test_a_server_that_was_never_there_ends_the_run(make: Make) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(BackendError, match=rf"{address}: no connection .*; start the server, or mend"):
            list(make(address, attempts=2).generate(asks(2)))


def test_a_server_that_goes_away_leaves_failures(make: Make) -> None:
    with FakeServer() as server:
        backend = make(server.base_url, attempts=2)
        assert len(texts(backend.generate(asks(2)))) == 2
    found = dict(backend.generate(asks(2)))
    assert all(isinstance(answer, Failure) for answer in found.values())
    assert sorted(found) == [0, 1]


def caller(folder: Path, backend: OpenAIHttpBackend) -> Caller:
    journal = Journal(folder / "journal.jsonl")
    return Caller(identity=backend.identity, load=lambda: backend, journal=journal, label="test", progress=False)


def test_no_trial_is_lost_or_counted_twice_at_a_fifth_of_failures_and_a_second_run_fills_the_rest(
    tmp_path: Path, make: Make
) -> None:
    requests = asks(400)
    names = [f"t{number}" for number in range(len(requests))]
    with FakeServer(fault=random_faults(0.2, seed=5, faults=list(LOST.values()))) as server:
        # The address stands in the identity; the same one serves both runs.
        first_run = caller(tmp_path, make(server.base_url, attempts=2, concurrency=32))
        answers = first_run.generate(requests, trials=names)
        lost = [position for position, answer in enumerate(answers) if isinstance(answer, Failure)]
        assert 0 < len(lost) < 60
        assert all("(2 of 2 attempts)" in answers[position].reason for position in lost)  # type: ignore[union-attr]
        assert (first_run.counts.n_made, first_run.counts.n_failed) == (400 - len(lost), len(lost))
        first_run.close()
        assert len((tmp_path / "journal.jsonl").read_bytes().splitlines()) == 400 - len(lost)

        server.fault = lambda _number, _seen: None
        server.seen.clear()
        second_run = caller(tmp_path, make(server.base_url))
        filled = second_run.generate(requests, trials=names)
        second_run.close()
        assert Counter(seen.text for seen in server.seen) == Counter(
            f"Rules.\n\nQuestion {position}?" for position in lost
        )
    for position, answer in enumerate(filled):
        assert isinstance(answer, Completion)
        assert answer.text == digest_words(f"Rules.\n\nQuestion {position}?")
        assert position in lost or answer == answers[position]
    assert recover(tmp_path / "journal.jsonl").n_duplicates == 0


def test_waits_before_new_attempts_grow_and_are_drawn_at_random() -> None:
    drawn = [[http_client.back_off_seconds(attempt) for _ in range(200)] for attempt in (1, 2, 3, 20)]
    assert [max(waits) <= bound for waits, bound in zip(drawn, (0.5, 1.0, 2.0, 30.0), strict=True)] == [True] * 4
    assert [max(waits) > bound / 2 for waits, bound in zip(drawn, (0.5, 1.0, 2.0, 30.0), strict=True)] == [True] * 4
    assert all(len(set(waits)) > 100 for waits in drawn)


def test_an_unknown_end_point_is_a_wrong_base_address(make: Make) -> None:
    with FakeServer() as server, pytest.raises(BackendError, match="base_url usually ends in /v1"):
        list(make(server.base_url.removesuffix("/v1")).generate([ask("x")]))
