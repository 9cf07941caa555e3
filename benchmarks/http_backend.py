"""Times the backend `openai_http`, journal included, against a bare aiohttp loop, with the server in another process.

Run it as `python benchmarks/http_backend.py` on a machine with two free cores: one for the server, one for the
client. How to read what it prints, for 5,000 trials at concurrency 64, medians of three rounds in which both take
turns:

- "50 ms": the server answers after 50 ms, so 64 calls under way can bring 1,280 answers a second. Ours must reach
  85 % of that, or of what the bare loop reaches on this machine, whichever is less: waiting must cost nothing.
- "0 ms": the server answers at once, so only the client's own work counts. Ours must reach 40 % of the bare loop's
  rate, with keys, retries, metering and journal, all answers on disk at the end.

The bare loop posts and parses JSON, 64 calls under way, and does nothing else. Both ratios are taken within one run,
so they carry from machine to machine better than the rates do; with other work on the machine neither says much.
Exit code 1 when a target is missed, an answer is lost or one is made twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from mragaudit.calls import Caller
from mragaudit.journal import Journal, recover
from mragaudit.llm.openai_http import OpenAIHttpBackend
from mragaudit.protocols import Completion, GenerateRequest, Message, Prompt

TRIALS, CONCURRENCY, ROUNDS = 5_000, 64, 3
SLOW_SECONDS = 0.05
LEAST_SLOW_SHARE, LEAST_FAST_SHARE = 0.85, 0.40
CONTEXT = "The office keeps a list of rooms, keys and opening hours for visitors. " * 12
ANSWER = {
    "object": "text_completion",
    "choices": [{"index": 0, "text": " The rooms on the first floor open at nine.\n", "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 190, "completion_tokens": 10, "total_tokens": 200},
}


def serve(latency_seconds: float) -> None:
    """Answer every completion with the same text after a while; print the port first."""
    body = json.dumps(ANSWER).encode()

    async def complete(request: web.Request) -> web.Response:
        await request.read()
        if latency_seconds:
            await asyncio.sleep(latency_seconds)
        return web.Response(body=body, content_type="application/json")

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/v1/completions", complete)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


@contextmanager
def server(latency_seconds: float) -> Iterator[str]:
    """Run the server in a process of its own; gives its base address."""
    command = [sys.executable, __file__, "--serve", str(latency_seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - this very file
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


def requests(count: int) -> list[GenerateRequest]:
    """Return different requests of a length that is usual for a generator."""
    return [
        GenerateRequest(
            prompt=Prompt(
                messages=(Message("system", "Answer from the record."), Message("user", f"{CONTEXT}\nQ: {number}\nA:")),
                shared=1,
            ),
            max_tokens=32,
            stop=("\n",),
        )
        for number in range(count)
    ]


async def bare_loop(base_url: str, payloads: list[dict[str, Any]]) -> list[str]:
    """Post all payloads, so many at once, and return the texts; no retries, no journal, nothing else."""
    texts = [""] * len(payloads)
    places = iter(range(len(payloads)))

    async def work(session: aiohttp.ClientSession) -> None:
        for place in places:
            async with session.post(f"{base_url}/completions", json=payloads[place]) as response:
                answer = await response.json()
                texts[place] = answer["choices"][0]["text"]

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(work(session) for _ in range(CONCURRENCY)))
    return texts


def run_bare(base_url: str, count: int) -> int:
    """Ask with the bare loop; return the number of answers."""
    payloads = [
        {
            "model": "m",
            "prompt": f"Answer from the record.\n\n{CONTEXT}\nQ: {number}\nA:",
            "max_tokens": 32,
            "stop": ["\n"],
        }
        for number in range(count)
    ]
    return sum(bool(text) for text in asyncio.run(bare_loop(base_url, payloads)))


def run_ours(base_url: str, count: int) -> int:
    """Ask as a stage does, with a journal on disk; return the number of answers, 0 if one is lost or doubled."""
    backend = OpenAIHttpBackend(model="m", base_url=base_url, concurrency=CONCURRENCY)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal.jsonl")
        caller = Caller(
            identity=backend.identity, load=lambda: backend, journal=Journal(path), label="benchmark", progress=False
        )
        answers = caller.generate(requests(count), trials=[str(number) for number in range(count)])
        caller.close()
        kept = recover(path)
    whole = len(kept.answers) == count and not kept.n_duplicates
    return sum(isinstance(answer, Completion) for answer in answers) if whole else 0


def rate(run: Callable[[str, int], int], base_url: str, *, count: int) -> float:
    """Return answers a second; raises RuntimeError for lost or doubled ones."""
    started = time.perf_counter()
    answered = run(base_url, count)
    seconds = time.perf_counter() - started
    if answered != count:
        raise RuntimeError(f"{answered} of {count} answers")
    return count / seconds


def measure(latency_seconds: float, *, count: int) -> tuple[float, float]:
    """Return the median rates of the bare loop and of ours, taken in turns against one server."""
    bare, ours = [], []
    with server(latency_seconds) as base_url:
        rate(run_bare, base_url, count=CONCURRENCY)
        for _ in range(ROUNDS):
            bare.append(rate(run_bare, base_url, count=count))
            ours.append(rate(run_ours, base_url, count=count))
    return statistics.median(bare), statistics.median(ours)


def compare(name: str, *, latency_seconds: float, least_share: float, count: int) -> bool:
    """Print both rates and their ratio; return whether it is high enough."""
    bare, ours = measure(latency_seconds, count=count)
    possible = CONCURRENCY / latency_seconds if latency_seconds else bare
    share = ours / min(possible, bare)
    reached = share >= least_share
    print(
        f"{name}: bare loop {bare:.0f}/s, ours {ours:.0f}/s, "
        + (f"at most {possible:.0f}/s possible, " if latency_seconds else "")
        + f"ratio {share:.2f}, target {least_share:.2f}: {'reached' if reached else 'MISSED'}"
    )
    return reached


def main() -> int:
    """Run both comparisons, or the server; return 1 when a target is missed."""
    parser = argparse.ArgumentParser(description="openai_http against a bare aiohttp loop")
    parser.add_argument("--serve", type=float, metavar="SECONDS", help="run the server only")
    parser.add_argument("--trials", type=int, default=TRIALS, help="answers a round")
    given = parser.parse_args()
    if given.serve is not None:
        serve(given.serve)
        return 0
    slow = compare("50 ms", latency_seconds=SLOW_SECONDS, least_share=LEAST_SLOW_SHARE, count=given.trials)
    fast = compare("0 ms", latency_seconds=0.0, least_share=LEAST_FAST_SHARE, count=given.trials)
    return 0 if slow and fast else 1


if __name__ == "__main__":
    sys.exit(main())
