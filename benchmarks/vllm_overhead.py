"""What a stage adds to vLLM: `make vllm && .venv-vllm/bin/python benchmarks/vllm_overhead.py [--trials N]`.

A tiny random Qwen2 answers prompts of a few hundred tokens, so that whatever is not the engine weighs as much as it
ever can. Measured is what a stage does from its requests to its answers: rendering, tokens, the journal on disk, and
the engine between. Outside the engine means outside the calls that hand requests to it and step it.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "checkpoints"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from mragaudit.calls import Caller
from mragaudit.journal import Journal, recover
from mragaudit.llm.vllm_lm import VllmBackend
from mragaudit.protocols import Completion, GenerateRequest, Message, Prompt

TRIALS = 1500
ROUNDS = 3
MOST_SHARE = 0.10
DOCUMENT = "The ticket QZ-4107-KB was opened by a customer of the northern region about a late refund. " * 2


def requests(count: int, *, round_number: int) -> list[GenerateRequest]:
    """Return prompts as the generator's: what all share, a document that three queries share, and a query."""
    shared = (
        Message("system", "Answer from the record alone."),
        Message("user", f"{DOCUMENT}\nQ: Which ticket?\nA:"),
        Message("assistant", "QZ-4107-KB"),
    )
    made = []
    for number in range(count):
        head = f"Record {round_number}.{number // 3}. {DOCUMENT}"
        last = Message("user", f"{head}\nQ: {number} which region?\nA:")
        made.append(
            GenerateRequest(
                prompt=Prompt(messages=(*shared, last), shared=len(shared), head=len(head)), max_tokens=32, stop=("\n",)
            )
        )
    return made


def run(backend: VllmBackend, asked: list[GenerateRequest]) -> tuple[float, float]:
    """Ask as a stage does and return (seconds in all, seconds inside the engine); raises for a lost answer."""
    inside = backend.meter.seconds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "generate.1-of-1.jsonl")
        started = time.perf_counter()
        with Journal(path) as journal:
            journal.set_batch(calls=backend.batch_calls, seconds=backend.batch_seconds)
            caller = Caller(
                identity=backend.identity, load=lambda: backend, journal=journal, label="benchmark", progress=False
            )
            answers = caller.generate(asked, trials=[str(number) for number in range(len(asked))])
        seconds = time.perf_counter() - started
        kept = recover(path)
    if len(kept.answers) != len(asked) or not all(isinstance(answer, Completion) for answer in answers):
        raise RuntimeError(f"{len(kept.answers)} of {len(asked)} answers")
    return seconds, backend.meter.seconds - inside


def measure(model: Path, *, count: int) -> bool:
    """Print every round's times and the median share outside the engine; return whether it is low enough."""
    backend = VllmBackend(model=str(model), context_tokens=2048, enforce_eager=True, kv_cache_gb=0.3)
    run(backend, requests(64, round_number=0))
    shares = []
    for number in range(1, ROUNDS + 1):
        seconds, inside = run(backend, requests(count, round_number=number))
        shares.append(1 - inside / seconds)
        print(f"{count} prompts: {seconds:.1f} s, {inside:.1f} s in the engine, {shares[-1]:.3f} outside")
    backend.close()
    share = statistics.median(shares)
    reached = share < MOST_SHARE
    print(f"median share outside {share:.3f}, target below {MOST_SHARE:.2f}: {'reached' if reached else 'MISSED'}")
    return reached


def main() -> int:
    """Measure; return 1 when the target is missed."""
    parser = argparse.ArgumentParser(description="vLLM stage overhead outside the engine")
    parser.add_argument("--trials", type=int, default=TRIALS, help="prompts a round")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    tiny_models = importlib.import_module("tiny_models")  # of the tests; it needs PyTorch
    with tempfile.TemporaryDirectory() as folder:
        return 0 if measure(tiny_models.make_qwen2(Path(folder, "tiny-qwen2")), count=given.trials) else 1


if __name__ == "__main__":
    sys.exit(main())
