"""One job, as pipeline.py runs it, with every answer counted that vLLM's engine finishes: `... STAGE SHARD`.

A byte goes to the file `finished` for each answer of a step before any of them is handed on, so that a test which
kills this program knows how many had been made.
"""

from __future__ import annotations

import os
from typing import Any

import pipeline

from mragaudit.llm.vllm_engine import Engine


def count_answers(path: str) -> None:
    """Add a byte to the file for each answer that a step of the engine finishes."""
    step = Engine._step
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def counted(engine: Engine) -> list[Any]:
        outputs = step(engine)
        os.write(descriptor, b"." * len(outputs))
        return outputs

    Engine._step = counted  # type: ignore[method-assign]


if __name__ == "__main__":
    count_answers("finished")
    pipeline.main()
