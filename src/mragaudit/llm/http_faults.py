"""What can go wrong with a call over HTTP, sorted by what helps: asking again, waiting, or mending the config."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import msgspec

from mragaudit.errors import BackendError, RequestError, did_you_mean

LONGEST_PAUSE_SECONDS = 600.0
"""A server that asks to be left alone for longer stops the run; what is finished is in the journal."""
LONGEST_WORDS_CHARS = 300
QUOTE_CHARS = 20
"""Words of a server that have this many characters in a row with the request may quote personal data."""

_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_REQUESTS_OWN = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY}
)
_FILTERED = frozenset({"content_filter", "content_policy_violation"})
_DENIED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class LostCallError(Exception):
    """A call came back without an answer; unless `again` is false, asking again may help."""

    def __init__(self, reason: str, *, again: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again


class UnreachableError(LostCallError):
    """No connection was made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What a server sent back."""

    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes


def is_passing(status: int) -> bool:
    """Return whether a later request may fare better: the server is at fault, or has too much to do."""
    return status in _AGAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def is_withheld(reply: Reply) -> bool:
    """Return whether a content filter refuses this prompt, by the words of OpenAI, Azure and OpenRouter for it.

    Attacks are what such filters look for: one that is refused says nothing of the others.
    """
    try:
        error = msgspec.json.decode(reply.content, type=_Refusal).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return {error.code, error.type} & _FILTERED != set() or "flagged_input" in (error.metadata or {})


class _Error(msgspec.Struct):
    code: str | int | float | None = None
    type: str | None = None
    metadata: dict[str, Any] | None = None


class _Refusal(msgspec.Struct):
    error: _Error


def pause_seconds(reply: Reply) -> float | None:
    """Return how long the server wants to be left alone, None when it does not say or cannot be understood.

    Retry-After holds seconds or a date (RFC 9110, section 10.2.3); a date is counted from the reply's own Date, so
    that clocks that differ do no harm.
    """
    value = reply.headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value)
    until, now = _date(value), _date(reply.headers.get("Date", "")) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds()) if until else None


def _date(value: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def too_long_a_pause(reply: Reply, *, seconds: float) -> BackendError:
    """Return the error that ends a run rather than ask a server too early."""
    return BackendError(
        f"{reply.url} answers {reply.status} and asks to wait {seconds:.0f} s, more than {LONGEST_PAUSE_SECONDS:.0f}; "
        "finished calls are kept, run the same command again then, or lower requests_per_minute, tokens_per_minute"
    )


def refusal(reply: Reply, *, words: str, model: str, served: Sequence[str], position: int | None) -> BackendError:
    """Return the error for a request that the server refuses for good: what it said, and what would be right.

    `served` are the names of the models that the server has, empty when it does not tell; `position` is None for a
    request that belongs to no trial.
    """
    said = f'{reply.url} answers {reply.status}: "{words}"'
    if reply.status in _DENIED:
        return BackendError(f"{said}; openai_http.api_key_env names the environment variable that holds a valid key")
    if served and model not in served:
        return BackendError(f'{said}; it serves no model "{model}": {did_you_mean(model, served)}')
    if reply.status in _REQUESTS_OWN and position is not None:
        return RequestError(said, position=position)
    if HTTPStatus.MULTIPLE_CHOICES <= reply.status < HTTPStatus.BAD_REQUEST:
        return BackendError(f"{said}; redirections are not followed, set openai_http.base_url to the final address")
    return BackendError(f"{said}; openai_http.base_url usually ends in /v1, and its /models lists the models' names")


def server_words(content: bytes, *, asked: bytes, redact: Callable[[str], str]) -> str:
    """Return what an error's body says, redacted, on one line and cut; not at all where it quotes the request.

    A request holds documents and queries; what a log or an error shows must not.
    """
    message = redact(_message(content))
    shown = "".join(character if character.isprintable() else " " for character in message)
    text = " ".join(shown.split())[:LONGEST_WORDS_CHARS]
    request = " ".join(asked.decode("utf-8", errors="replace").split())
    starts = range(len(text) - QUOTE_CHARS + 1)
    if any(text[start : start + QUOTE_CHARS] in request for start in starts):
        return "(its words quote the request and are left out)"
    return text or "(no words)"


def _message(content: bytes) -> str:
    """Return the message of an error body in the forms that OpenAI, Ollama and FastAPI use, else the whole text."""
    try:
        body: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return content.decode("utf-8", errors="replace")
    for key in ("error", "message", "detail"):
        if isinstance(body, dict) and key in body:
            body = body[key]
    if isinstance(body, list):
        # FastAPI's list of faults; beside the message it repeats the input.
        return "; ".join(str(one.get("msg", "")) for one in body if isinstance(one, dict))
    return body if isinstance(body, str) else ""
