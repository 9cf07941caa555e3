"""Backends on the fake server, closed at the end of their test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from endpoint_requests import Make

from mragaudit.llm.openai_http import OpenAIHttpBackend


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Return a function that makes a backend on an address; waits before new attempts are a hundredth of theirs."""
    from mragaudit.llm import http_client  # noqa: PLC0415 - aiohttp may be absent, then the tests are skipped

    waits = http_client.back_off_seconds
    monkeypatch.setattr(http_client, "back_off_seconds", lambda attempt: waits(attempt) / 100)
    made: list[OpenAIHttpBackend] = []

    def on(base_url: str, **options: Any) -> OpenAIHttpBackend:
        made.append(OpenAIHttpBackend(**{"model": "fake-model", "base_url": base_url, **options}))
        return made[-1]

    yield on
    for backend in made:
        backend.close()
