"""Model calls as stages make them: served from the journal, else made, journalled as they finish, and counted."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec
from tqdm import tqdm

from mragaudit.errors import BackendError, RequestError
from mragaudit.journal import Answer, Journal, request_key
from mragaudit.llm.base import as_choice_backend
from mragaudit.protocols import (
    Backend,
    ChooseRequest,
    Completion,
    Failure,
    GenerateRequest,
    ModelIdentity,
    OptionScores,
    SelectRequest,
)

logger = logging.getLogger(__name__)

Request = TypeVar("Request", GenerateRequest, ChooseRequest, SelectRequest)
A = TypeVar("A", Completion, OptionScores)


class CallCounts(msgspec.Struct, kw_only=True):
    """What a job asked, what the journal answered, what the model was called for."""

    n_requests: int = 0
    n_distinct: int = 0
    """Different requests: equal ones are asked once."""
    n_from_journal: int = 0
    n_made: int = 0
    n_failed: int = 0
    """Calls that never came back."""
    prompt_tokens: int = 0
    """Of the calls made."""
    completion_tokens: int = 0


def total_counts(counts: Iterable[CallCounts]) -> CallCounts:
    """Return the field-by-field sum."""
    listed = list(counts)
    names = CallCounts.__struct_fields__
    return CallCounts(**{name: sum(getattr(one, name) for one in listed) for name in names})


@contextmanager
def _named(requests: Sequence[object], trials: Sequence[str]) -> Iterator[None]:
    """Say which trial it is whose request cannot be taken."""
    if len(requests) != len(trials):
        raise ValueError(f"{len(requests)} requests and {len(trials)} trials")
    try:
        yield
    except RequestError as error:
        raise BackendError(f"trial {trials[error.position]}: {error}") from error


def _usable(answer: Answer | Failure) -> Answer | Failure:
    """Return the answer, or why it is none: where numbers overflowed, every comparison with a threshold says ALLOW."""
    if isinstance(answer, OptionScores) and not all(map(math.isfinite, answer.logprobs)):
        return Failure(reason="an option has no finite log-probability (half precision may overflow)")
    return answer


class Caller:
    """The one way from a stage to a language model.

    The model is loaded at the first call that the journal cannot answer, so a finished run repeats without one.
    """

    def __init__(
        self,
        *,
        identity: ModelIdentity,
        load: Callable[[], Backend],
        journal: Journal,
        label: str,
        progress: bool = True,
    ):
        self.identity = identity
        self.counts = CallCounts()
        self.load_seconds = 0.0
        self._load = load
        self._journal = journal
        self._label = label
        self._progress = progress
        self._backend: Backend | None = None

    @property
    def backend(self) -> Backend:
        """The model, loaded when first needed."""
        if self._backend is None:
            start = time.perf_counter()
            self._backend = self._load()
            self.load_seconds = time.perf_counter() - start
            self._journal.set_batch(calls=self._backend.batch_calls, seconds=self._backend.batch_seconds)
            logger.info("%s: model loaded in %.1f s", self._label, self.load_seconds)
        return self._backend

    @property
    def inside_seconds(self) -> float:
        """Seconds spent in the backend's lowest call; 0 when no model was needed."""
        return self._backend.meter.seconds if self._backend is not None else 0.0

    def generate(self, requests: Sequence[GenerateRequest], *, trials: Sequence[str]) -> list[Completion | Failure]:
        """Return the answers in the order of the requests; `trials` names what each belongs to, for errors."""
        with _named(requests, trials):
            return self._serve(requests, self._generate, Completion)

    def choose(self, requests: Sequence[ChooseRequest], *, trials: Sequence[str]) -> list[OptionScores | Failure]:
        """Return the options' log-probabilities in the order of the requests; `trials` as above."""
        with _named(requests, trials):
            return self._serve(requests, self._choose, OptionScores)

    def select(self, requests: Sequence[SelectRequest], *, trials: Sequence[str]) -> list[Completion | Failure]:
        """Return replies that are one of the options each, in the order of the requests; `trials` as above.

        Raises BackendError for a backend that cannot hold a reply to options.
        """
        with _named(requests, trials):
            return self._serve(requests, self._select, Completion)

    def _generate(self, requests: list[GenerateRequest]) -> Iterator[tuple[int, Completion | Failure]]:
        return self.backend.generate(requests)

    def _choose(self, requests: list[ChooseRequest]) -> Iterator[tuple[int, OptionScores | Failure]]:
        return self.backend.choose(requests)

    def _select(self, requests: list[SelectRequest]) -> Iterator[tuple[int, Completion | Failure]]:
        return as_choice_backend(self.backend).select(requests)

    def close(self) -> None:
        """Close journal and model."""
        self._journal.close()
        if self._backend is not None:
            self._backend.close()

    def _serve(
        self,
        requests: Sequence[Request],
        call: Callable[[list[Request]], Iterator[tuple[int, Answer | Failure]]],
        kind: type[A],
    ) -> list[A | Failure]:
        keys = [request_key(request, self.identity) for request in requests]
        distinct = dict(zip(keys, requests, strict=True))
        missing = [key for key in distinct if self._journal.get(key) is None]
        self._count(len(requests), len(distinct), len(missing))
        failures: dict[str, Failure] = {}
        if missing:
            asked = [distinct[key] for key in missing]
            try:
                self._make(missing, call(asked), failures)
            except RequestError as error:
                raise RequestError(str(error), position=keys.index(missing[error.position])) from error
        return [failures.get(key) or self._known(key, kind) for key in keys]

    def _count(self, n_requests: int, n_distinct: int, n_missing: int) -> None:
        self.counts.n_requests += n_requests
        self.counts.n_distinct += n_distinct
        self.counts.n_from_journal += n_distinct - n_missing
        # Who draws no bar asks in many small rounds, and their caller tells how far it is.
        level = logging.INFO if self._progress else logging.DEBUG
        logger.log(level, "%s: %d calls, %d in the journal", self._label, n_distinct, n_distinct - n_missing)

    def _make(
        self, keys: list[str], results: Iterator[tuple[int, Answer | Failure]], failures: dict[str, Failure]
    ) -> None:
        """Take the results as they finish; each is in the journal before the next is asked for."""
        bar = tqdm(
            results,
            total=len(keys),
            desc=self._label,
            unit="call",
            mininterval=2.0,
            disable=not self._progress,
        )
        for position, answer in bar:
            result = _usable(answer)
            if isinstance(result, Failure):
                failures[keys[position]] = result
                self.counts.n_failed += 1
                continue
            self._journal.append(keys[position], result)
            self.counts.n_made += 1
            self.counts.prompt_tokens += result.prompt_tokens
            if isinstance(result, Completion):
                self.counts.completion_tokens += result.completion_tokens

    def _known(self, key: str, kind: type[A]) -> A:
        answer = self._journal.get(key)
        if not isinstance(answer, kind):
            raise TypeError(f"{self._label}: the backend gave {type(answer).__name__} where {kind.__name__} was asked")
        return answer
