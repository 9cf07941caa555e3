from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mragaudit.errors import BackendError, RequestError
from mragaudit.llm.http_faults import Reply, is_passing, is_withheld, pause_seconds, refusal, server_words

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
ASKED = json.dumps({"prompt": "Record: Ada Example, 555-0100\nQuestion: who lives there?"}).encode()


def reply(status: int = 429, **headers: str) -> Reply:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(url="http://127.0.0.1/v1/completions", status=status, headers=given, content=b"")


def refused(status: int, *, served: tuple[str, ...] = ("right-name",), model: str = "right-name") -> BackendError:
    return refusal(reply(status), words="no", model=model, served=served, position=4)


def test_a_pause_may_be_seconds_or_a_date_counted_from_the_servers_own_clock() -> None:
    date = format_datetime(NOW + timedelta(seconds=90), usegmt=True)
    assert pause_seconds(reply(Retry_After="7")) == 7.0
    assert pause_seconds(reply(Retry_After=date, Date=format_datetime(NOW, usegmt=True))) == 90.0


def test_a_date_that_has_passed_is_no_pause_and_what_is_neither_is_unknown() -> None:
    past = format_datetime(NOW - timedelta(hours=1), usegmt=True)
    assert pause_seconds(reply(Retry_After=past, Date=format_datetime(NOW, usegmt=True))) == 0.0
    assert [pause_seconds(reply(Retry_After=value)) for value in ("soon", "-3", "")] == [None] * 3
    assert pause_seconds(reply(Retry_After="Mon, 30 Nov 99999999999 12:00:00 GMT")) is None
    assert pause_seconds(reply()) is None


def test_a_date_without_the_servers_clock_is_counted_from_ours() -> None:
    found = pause_seconds(reply(Retry_After=format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)))
    assert found is not None
    assert 90 < found <= 100


def test_what_may_pass_is_too_many_requests_a_timeout_and_a_fault_of_the_server() -> None:
    assert [
        status for status in (200, 400, 401, 404, 408, 425, 429, 500, 502, 503, 504, 529) if is_passing(status)
    ] == [
        *(408, 425, 429, 500, 502, 503, 504, 529),
    ]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_the_server_does_not_take_is_named_by_its_position(status: int) -> None:
    error = refused(status)
    assert isinstance(error, RequestError)
    assert error.position == 4


@pytest.mark.parametrize(
    ("status", "model", "said"),
    [
        (404, "rigt-name", 'it serves no model "rigt-name": did you mean "right-name"?'),
        (400, "other", 'it serves no model "other": allowed: right-name'),
        (401, "right-name", "api_key_env names the environment variable that holds a valid key"),
        (403, "right-name", "api_key_env"),
        (404, "right-name", "base_url usually ends in /v1"),
        (308, "right-name", "redirections are not followed"),
    ],
)
def test_a_refusal_for_good_says_what_would_be_right(status: int, model: str, said: str) -> None:
    error = refused(status, model=model)
    assert not isinstance(error, RequestError)
    assert f'answers {status}: "no"' in str(error)
    assert said in str(error)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"error": {"message": "too\\nlong", "code": 1}}', "too long"),
        (b'{"error": "model not found"}', "model not found"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"detail": [{"msg": "field required", "input": {"prompt": "Ada"}}, {"msg": "bad"}]}', "field required; bad"),
        (b"<h1>Bad Gateway</h1>", "<h1>Bad Gateway</h1>"),
        (b"", "(no words)"),
        (b'{"choices": []}', "(no words)"),
        (b"\xff" + b"x" * 900, "\ufffd" + "x" * 299),
    ],
)
def test_the_servers_words_are_found_in_the_usual_forms_and_kept_short(content: bytes, words: str) -> None:
    assert server_words(content, asked=ASKED, redact=str) == words


def test_words_that_quote_the_request_are_left_out() -> None:
    content = json.dumps({"error": "cannot parse: Record: Ada Example, 555-0100"}).encode()
    assert server_words(content, asked=ASKED, redact=str) == "(its words quote the request and are left out)"


def test_words_bring_no_control_characters_into_a_terminal() -> None:
    assert server_words(b"busy\x1b[2J\x00\r\nnow", asked=ASKED, redact=str) == "busy [2J now"


@pytest.mark.parametrize(
    ("error", "withheld"),
    [
        ({"code": "content_filter", "message": "filtered by policy"}, True),
        ({"type": "content_policy_violation", "code": None}, True),
        ({"code": 403, "message": "flagged", "metadata": {"flagged_input": "who"}}, True),
        ({"code": "context_length_exceeded", "message": "content_filter"}, False),
        ("content_filter", False),
    ],
)
def test_a_prompt_that_a_content_filter_refuses_is_told_from_a_request_that_is_wrong(
    error: object, *, withheld: bool
) -> None:
    content = json.dumps({"error": error}).encode()
    assert is_withheld(Reply(url="u", status=400, headers={}, content=content)) is withheld


def test_words_are_redacted_before_they_are_cut() -> None:
    content = b"x" * 297 + b"secret"
    words = server_words(content, asked=ASKED, redact=lambda text: text.replace("secret", "[key]"))
    assert words == "x" * 297 + "[ke"
