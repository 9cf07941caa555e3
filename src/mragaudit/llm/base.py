"""What backends share: batch limits, the check of a prompt, order by shared prefix, log-softmax, cutting of text."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from mragaudit.errors import BackendError, RequestError
from mragaudit.protocols import Backend, ChoiceBackend, Prompt

BATCH_CALLS = 16
"""Calls after which the journal must be on disk, for backends that answer one at a time (pipeline.md, Journal)."""
BATCH_SECONDS = 10.0
"""Seconds of model time after which it must be, for the same backends."""
LOGPROB_DECIMALS = 6
"""Log-probabilities are rounded to this, so that their JSON is the same on every run."""


def check_prompt(prompt: Prompt, *, position: int) -> None:
    """Raise RequestError for a prompt that no model can continue."""
    if not prompt.messages or prompt.messages[-1].speaker != "user":
        raise RequestError("the last message of a prompt is the user's", position=position)
    if not 0 <= prompt.shared < len(prompt.messages):
        raise RequestError(
            f"shared is {prompt.shared}, but of {len(prompt.messages)} messages at least the last one is not shared",
            position=position,
        )


def as_choice_backend(backend: Backend) -> ChoiceBackend:
    """Return the backend as one that holds replies to options; raises BackendError for one that cannot."""
    if not isinstance(backend, ChoiceBackend):
        raise BackendError(
            f"the backend {backend.identity.backend} cannot hold a reply to given options; "
            "set judge.mode: margin or parse"
        )
    return backend


def grouped(keys: Sequence[Sequence[Hashable]]) -> list[int]:
    """Return all positions, those whose keys begin alike next to each other, in order of first appearance."""
    first: dict[tuple[Hashable, ...], int] = {}

    def place(key: Sequence[Hashable]) -> list[int]:
        return [first[tuple(key[:length])] for length in range(1, len(key) + 1)]

    for position, key in enumerate(keys):
        for length in range(1, len(key) + 1):
            first.setdefault(tuple(key[:length]), position)
    return sorted(range(len(keys)), key=lambda position: (place(keys[position]), position))


def log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return natural-log probabilities in double precision, same shape (n_vocabulary,)."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()), dtype=np.float64)


def rounded_logprob(value: float) -> float:
    """Return a log-probability rounded to LOGPROB_DECIMALS, never minus zero."""
    return round(float(value), LOGPROB_DECIMALS) + 0.0


class AnswerText:
    """An answer growing by bytes that may end inside a character, watched for stop strings."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = tuple(text for text in stop if text)
        self._longest = max(map(len, self._stop), default=1)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._text = ""

    def add(self, piece: bytes) -> bool:
        """Append the bytes of a token; return whether a stop string came, before which the text now ends."""
        searched = max(0, len(self._text) - self._longest + 1)
        self._text += self._decoder.decode(piece)
        places = [place for text in self._stop if (place := self._text.find(text, searched)) >= 0]
        if places:
            self._text = self._text[: min(places)]
        return bool(places)

    def text(self) -> str:
        """Return the answer without outer white space; bytes of an unfinished last character are left out."""
        return self._text.strip()


def longest_head(text: str, *, max_tokens: int, ends: Sequence[int], count: Callable[[str], int]) -> str:
    """Return the longest head of a text whose own tokens number at most `max_tokens`.

    `ends` holds the offset in characters at which each token of the text ends; `count` counts the tokens of a head.
    A cut can change how the characters before it are tokenised, in either direction: heads that reach into the
    next token are tried from the longest down.
    """
    if len(ends) <= max_tokens:
        return text
    if max_tokens <= 0:
        return ""
    length = ends[max_tokens]
    while length and count(text[:length]) > max_tokens:
        length -= 1
    return text[:length]
