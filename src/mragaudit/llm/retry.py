"""Transport failures tried again before they count as missing data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tenacity import RetryCallState, Retrying, wait_random_exponential

from mragaudit.llm.base import as_choice_backend
from mragaudit.protocols import (
    Backend,
    ChooseRequest,
    Completion,
    Failure,
    GenerateRequest,
    Meter,
    ModelIdentity,
    OptionScores,
    SelectRequest,
)

Request = TypeVar("Request", GenerateRequest, ChooseRequest, SelectRequest)
Answer = TypeVar("Answer", Completion, OptionScores)

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0

_WAITING = wait_random_exponential(multiplier=FIRST_WAIT_SECONDS, max=LONGEST_WAIT_SECONDS)


class RetryingBackend:
    """A backend whose failed calls are asked again, with exponential back-off and jitter.

    Answers come out as they finish; only the positions that failed are asked again, and a position that fails
    `attempts` times comes out as its last Failure.
    """

    def __init__(self, backend: Backend, *, attempts: int, sleep: Callable[[float], None] = time.sleep) -> None:
        self.identity: ModelIdentity = backend.identity
        self.meter: Meter = backend.meter
        self.batch_calls = backend.batch_calls
        self.batch_seconds = backend.batch_seconds
        self._backend = backend
        self._attempts = attempts
        self._sleep = sleep

    def generate(self, requests: Sequence[GenerateRequest]) -> Iterator[tuple[int, Completion | Failure]]:
        """Yield (position, answer), each position once."""
        return self._persist(requests, self._backend.generate)

    def choose(self, requests: Sequence[ChooseRequest]) -> Iterator[tuple[int, OptionScores | Failure]]:
        """Yield (position, log-probabilities), each position once."""
        return self._persist(requests, self._backend.choose)

    def select(self, requests: Sequence[SelectRequest]) -> Iterator[tuple[int, Completion | Failure]]:
        """Yield (position, option), each position once; raises BackendError where the model cannot be held to any."""
        return self._persist(requests, as_choice_backend(self._backend).select)

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return self._backend.count_tokens(text)

    def truncate(self, text: str, max_tokens: int) -> str:
        """Return the longest head of the text with at most `max_tokens` tokens."""
        return self._backend.truncate(text, max_tokens)

    def close(self) -> None:
        """Free the model."""
        self._backend.close()

    def _persist(
        self,
        requests: Sequence[Request],
        call: Callable[[Sequence[Request]], Iterator[tuple[int, Answer | Failure]]],
    ) -> Iterator[tuple[int, Answer | Failure]]:
        positions = list(range(len(requests)))
        for attempt in range(1, self._attempts + 1):
            failures: dict[int, Failure] = {}
            for index, result in call([requests[position] for position in positions]):
                if isinstance(result, Failure):
                    failures[positions[index]] = result
                else:
                    yield positions[index], result
            positions = sorted(failures)
            if not positions:
                return
            if attempt < self._attempts:
                self._sleep(back_off_seconds(attempt))
        yield from failures.items()


def back_off_seconds(attempt: int) -> float:
    """Return how long to wait after this many attempts: random, up to a bound that doubles each time."""
    # Tenacity's waits ask a retry's state how many attempts were made.
    state = RetryCallState(retry_object=Retrying(), fn=None, args=(), kwargs={})
    state.attempt_number = attempt
    return _WAITING(state)
