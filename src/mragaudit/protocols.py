"""What the stages ask of models: plugin kinds meet here and need not know each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

CLASSIFICATION = "classification"
"""Rendering of a model that reads a prompt's last message alone and names its class."""
Speaker = Literal["system", "user", "assistant"]
TRANSLATION = "translation"
"""Rendering of a model that reads a prompt's translation task and none of its messages."""


class Message(msgspec.Struct, frozen=True):
    """One turn of a prompt."""

    speaker: Speaker
    content: str


class TranslationTask(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt asks to have translated, as data: for models that translate and follow no instructions.

    Languages are FLORES-200 codes such as `swh_Latn`: ISO 639-3, and ISO 15924 for the script.
    """

    text: str
    source: str
    target: str


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of one call, with the places at which a backend may cut it to reuse what it computed.

    The first `shared` messages are the same for every call from one template; the first `head` characters of the
    last message hold the documents, which several queries have in common. A backend that reuses prefixes cuts
    exactly at these places, whatever it computed before, so that no answer depends on the order of the work.
    """

    messages: tuple[Message, ...]
    shared: int
    head: int = 0
    task: TranslationTask | None = None
    """What the messages ask for, where that is a translation between languages with FLORES-200 codes."""


class GenerateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Greedy continuation of a prompt."""

    prompt: Prompt
    max_tokens: int
    stop: tuple[str, ...]
    """Strings that end the answer; they are not part of it."""
    repeat: int = 0
    """Index of an A/A repeat; part of the journal key."""


class ChooseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Log-probabilities of given continuations of a prompt."""

    prompt: Prompt
    options: tuple[str, ...]
    repeat: int = 0


class SelectRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Greedy continuation of a prompt in which nothing but one of the options can be said."""

    prompt: Prompt
    options: tuple[str, ...]
    repeat: int = 0


class Completion(msgspec.Struct, frozen=True, kw_only=True, tag="completion"):
    """A finished answer, stop string removed and outer white space stripped."""

    text: str
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int
    completion_tokens: int


class OptionScores(msgspec.Struct, frozen=True, kw_only=True, tag="option_scores"):
    """Natural-log probabilities of the options, in the order of the request (sum over an option's tokens)."""

    logprobs: tuple[float, ...]
    prompt_tokens: int


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """A call that never came back for reasons outside the model: neither a leak nor a non-leak."""

    reason: str


class ModelIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What determines an answer beside the request."""

    backend: str
    model: str
    revision: str
    """Revision of the weights, or sha256 of their file."""
    rendering: str
    """How messages become the model's input: completion or chat."""


class Meter:
    """Adds up the time spent in the lowest call of a backend or embedder, and counts those calls."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0

    def add(self, seconds: float) -> None:
        """Count one call that took `seconds`."""
        self.seconds += seconds
        self.calls += 1


@runtime_checkable
class Backend(Protocol):
    """A language model. Results come out as they finish, with the position of their request."""

    identity: ModelIdentity
    meter: Meter
    batch_calls: int
    """Finished calls after which the journal must be on disk: 16, or 64 where the engine batches by itself."""
    batch_seconds: float
    """Seconds of model time after which it must be: 10, or 5 where the engine batches by itself."""

    def generate(self, requests: Sequence[GenerateRequest]) -> Iterator[tuple[int, Completion | Failure]]:
        """Yield (position in `requests`, answer), each position once, in any order."""
        ...

    def choose(self, requests: Sequence[ChooseRequest]) -> Iterator[tuple[int, OptionScores | Failure]]:
        """Yield (position in `requests`, log-probabilities), each position once, in any order."""
        ...

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        ...

    def truncate(self, text: str, max_tokens: int) -> str:
        """Return the longest head of the text that has at most `max_tokens` tokens."""
        ...

    def close(self) -> None:
        """Free the model."""
        ...


@runtime_checkable
class ChoiceBackend(Backend, Protocol):
    """A language model whose engine can hold a reply to given options."""

    def select(self, requests: Sequence[SelectRequest]) -> Iterator[tuple[int, Completion | Failure]]:
        """Yield (position in `requests`, answer whose text is one of the options), each once, in any order."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Text to unit vectors."""

    identity: ModelIdentity
    meter: Meter
    dimensions: int

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), dimensions)."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), dimensions)."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TokenSignals:
    """What the tokens of one text say, beside its one vector."""

    weights: Mapping[int, float]
    """Token id → weight above 0, for lexical matching; empty where no token counts."""
    vectors: NDArray[np.float32]
    """Unit vectors, shape (n_tokens, dimensions); at least one."""


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder that also scores by tokens."""

    def document_signals(self, texts: Sequence[str]) -> list[TokenSignals]:
        """Return one record a text."""
        ...

    def query_signals(self, texts: Sequence[str]) -> list[TokenSignals]:
        """Return one record a text."""
        ...
