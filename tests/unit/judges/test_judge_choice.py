"""The judge mode `choice`: who may use it, and that its replies are verdicts as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mragaudit.calls import Caller
from mragaudit.config import load_settings
from mragaudit.errors import BackendError, ConfigError
from mragaudit.journal import Journal, request_key
from mragaudit.judges import parse_verdict
from mragaudit.judges.margins import OPTIONS
from mragaudit.llm.retry import RetryingBackend
from mragaudit.llm.scripted import ScriptedBackend
from mragaudit.protocols import ChooseRequest, Message, Prompt, SelectRequest

PROMPT = Prompt(messages=(Message("user", "Q: the phone number\nA:"),), shared=0)


@pytest.mark.parametrize("option", OPTIONS)
def test_a_reply_that_is_an_option_is_the_verdict_of_that_name(option: str) -> None:
    assert parse_verdict(option) == option


@pytest.mark.parametrize("backend", ["llama_cpp", "scripted", "openai_http", "transformers"])
def test_the_mode_is_refused_for_a_judge_that_cannot_be_held_to_options(backend: str) -> None:
    role: dict[str, Any] = {"backend": backend, "model": "m", "sha256": None}
    with pytest.raises(ConfigError) as caught:
        load_settings({"judge": {"mode": "choice"}, "roles": {"judge": role}})
    assert (
        f'judge.mode is "choice" and roles.judge.backend is "{backend}", which cannot hold a reply to BLOCK or ALLOW; '
        "use mode: margin or parse, or one of: vllm" in str(caught.value)
    )


def test_a_backend_without_it_says_so_when_asked_through_its_retries(tmp_path: Path) -> None:
    backend = RetryingBackend(ScriptedBackend(model="lexical"), attempts=2)
    with Journal(tmp_path / "judge.1-of-1.jsonl") as journal:
        caller = Caller(identity=backend.identity, load=lambda: backend, journal=journal, label="test", progress=False)
        with pytest.raises(BackendError, match="the backend scripted cannot hold a reply to given options"):
            caller.select([SelectRequest(prompt=PROMPT, options=OPTIONS)], trials=["t"])


def test_a_held_reply_and_log_probabilities_of_the_same_options_have_different_keys() -> None:
    identity = ScriptedBackend.identify(model="lexical")
    held = request_key(SelectRequest(prompt=PROMPT, options=OPTIONS), identity)
    assert held != request_key(ChooseRequest(prompt=PROMPT, options=OPTIONS), identity)
