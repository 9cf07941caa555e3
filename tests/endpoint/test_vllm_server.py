"""`openai_http` against a real server of vLLM on the tiny checkpoint: one load for all stages (docs/models.md)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from endpoint_requests import Make

from mragaudit.llm.transformers_lm import TransformersBackend
from mragaudit.protocols import ChooseRequest, GenerateRequest, Message, OptionScores, Prompt

pytestmark = [pytest.mark.vllm, pytest.mark.http, pytest.mark.slow]

PATIENCE_SECONDS = 400.0
"""Its three processes import vLLM one after another."""
COMMAND = (
    *("-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1", "--served-model-name", "tiny"),
    *("--generation-config", "vllm", "--enforce-eager", "--dtype", "float32", "--max-model-len", "512"),
    *("--kv-cache-memory-bytes", "100000000"),
)


def prompt(place: int) -> Prompt:
    messages = (Message("system", "Answer."), Message("user", f"Q{place}: {'tell me more ' * place}\nA:"))
    return Prompt(messages=messages, shared=1)


@pytest.fixture(scope="module")
def base_url(tiny_qwen2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    command = [sys.executable, *COMMAND, "--model", str(tiny_qwen2), "--port", str(port)]
    environment = {**os.environ, "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with log.open("wb") as output, subprocess.Popen(command, env=environment, stdout=output, stderr=output) as process:
        try:
            _await(port, process, log=log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def _await(port: int, process: subprocess.Popen[bytes], *, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health"):
                return
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(log.read_text(encoding="utf-8"))


@pytest.mark.parametrize("rendering", ["completion", "chat"])
def test_answers_over_http_are_those_of_transformers_on_the_same_weights(
    base_url: str, tiny_qwen2: Path, make: Make, rendering: str
) -> None:
    requests = [GenerateRequest(prompt=prompt(place), max_tokens=16, stop=("\n",)) for place in range(12)]
    served = dict(make(base_url, model="tiny", rendering=rendering, concurrency=4).generate(requests))
    local = TransformersBackend(model=str(tiny_qwen2), context_tokens=512, rendering=rendering)  # type: ignore[arg-type]
    expected = dict(local.generate(requests))
    assert {place: answer.text for place, answer in served.items()} == {  # type: ignore[union-attr]
        place: answer.text for place, answer in expected.items()
    }


def test_echoed_log_probabilities_are_those_of_transformers(base_url: str, tiny_qwen2: Path, make: Make) -> None:
    requests = [ChooseRequest(prompt=prompt(place), options=("BLOCK", "ALLOW")) for place in range(4)]
    served = dict(make(base_url, model="tiny").choose(requests))
    expected = dict(TransformersBackend(model=str(tiny_qwen2), context_tokens=512).choose(requests))
    for place, scores in served.items():
        assert isinstance(scores, OptionScores)
        assert scores.logprobs == pytest.approx(expected[place].logprobs, abs=1e-3)
