"""Requests and answers as they travel: JSON of the OpenAI completion and chat end points, and nothing of transport."""

from __future__ import annotations

import logging
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any, Literal

import msgspec

from mragaudit.errors import BackendError
from mragaudit.llm.base import AnswerText, rounded_logprob
from mragaudit.llm.http_endpoint import require_positive
from mragaudit.llm.http_faults import LostCallError
from mragaudit.llm.rendering import render_completion
from mragaudit.protocols import Completion, GenerateRequest, Prompt

logger = logging.getLogger(__name__)

Rendering = Literal["completion", "chat"]
Scoring = Literal["echo", "top"]

BYTES_PER_TOKEN = 3
"""Rule of `estimate`: English has 4 to 5 UTF-8 bytes a token, Chinese 3 to 4, Swahili about 3, so that no language
is likely to be counted too low."""
FEWEST_CHARS = 2
"""A single letter begins too many words to stand for an option, unless it is all of it."""
LONGEST_NAME_CHARS = 120
MOST_NAMES = 3
"""Of models that answer in the place of the one asked for, that are logged."""
LONGEST_REASON_CHARS = 40
"""Of a server's reason for the end of an answer, as a row shows it."""
HIGHEST_LOGPROB = 1e-3
"""What is above is no logarithm of a probability but, say, the probability; low bits may reach above 0."""
OWN_FIELDS = frozenset(
    "model prompt messages max_tokens temperature stop n stream echo logprobs top_logprobs best_of".split()
)
"""Fields of a request that the config's `extra_body` may not set."""


Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _Usage(msgspec.Struct):
    prompt_tokens: Count
    completion_tokens: Count = 0


class _TopToken(msgspec.Struct):
    token: str
    logprob: float


class _Place(msgspec.Struct):
    top_logprobs: list[_TopToken] = []


class _Logprobs(msgspec.Struct):
    """Both forms: of chat (`content`), which llama.cpp uses for completions too, and of completions."""

    content: list[_Place] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    message: _Message | None = None
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class Answer(msgspec.Struct):
    """A reply of either end point, what we read of it."""

    model: Any = None
    choices: list[_Choice] = []
    usage: _Usage | None = None


_ANSWER = msgspec.json.Decoder(Answer)


class _Tokens(msgspec.Struct):
    tokens: list[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class EchoScore:
    """Log-probability of an option whose text the server echoed."""

    logprob: float
    prompt_tokens: int
    """Without the option's own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TopTokens:
    """The likeliest first tokens of an answer."""

    logprobs: dict[str, float]
    """Text of a token → log-probability; empty where the server gives none."""
    prompt_tokens: int


class ServedNames:
    """Other models than the one asked for that answers say they come from, each logged once.

    A gateway may answer with another model, and say so here alone; but servers also write a name longer or shorter.
    """

    def __init__(self, asked: str) -> None:
        self._asked = asked
        self._seen: set[str] = set()

    def note(self, name: object) -> None:
        """Take the name that an answer gives."""
        if not isinstance(name, str) or name in {"", self._asked, *self._seen} or len(self._seen) == MOST_NAMES:
            return
        self._seen.add(name)
        logger.warning(
            "openai_http: asked for the model %r, an answer comes from %r; hold the names against each other",
            self._asked,
            name[:LONGEST_NAME_CHARS],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """How a model is asked, and how its answers are read."""

    model: str
    rendering: Rendering
    scoring: Scoring
    top_count: int
    """How many of the likeliest tokens to ask for."""
    extra: Mapping[str, Any]
    """Fields added to every request."""
    estimate_usage: bool
    """Whether to estimate token counts that an answer lacks; else such an answer is an error."""
    names: ServedNames

    def __post_init__(self) -> None:
        require_positive("top_logprobs", self.top_count)

    @property
    def path(self) -> str:
        """The end point, below the base address."""
        return "/chat/completions" if self.rendering == "chat" else "/completions"

    @property
    def lead(self) -> str:
        """What stands between a prompt and its answer."""
        return "" if self.rendering == "chat" else " "

    def generate_body(self, request: GenerateRequest) -> bytes:
        """Return the request for an answer; like all bodies, UnicodeEncodeError for text without a UTF-8 form."""
        stop = {"stop": list(request.stop)} if request.stop else {}
        return self._body(self._input(request.prompt), max_tokens=request.max_tokens, **stop)

    def top_body(self, prompt: Prompt) -> bytes:
        """Return the request for the likeliest first tokens."""
        chat = {"logprobs": True, "top_logprobs": self.top_count}
        asked = chat if self.rendering == "chat" else {"logprobs": self.top_count}
        return self._body(self._input(prompt), max_tokens=1, **asked)

    def echo_body(self, prompt: Prompt, option: str) -> bytes:
        """Return the request for the log-probabilities of the prompt's and the option's own tokens.

        One token is generated and dropped: some servers take 0 for "no limit".
        """
        text = {"prompt": completion_text(prompt) + self.lead + option}
        return self._body(text, max_tokens=1, echo=True, logprobs=1)

    def _body(self, asked: Mapping[str, Any], *, max_tokens: int, **fields: Any) -> bytes:
        fixed = {"model": self.model, "max_tokens": max_tokens, "temperature": 0, "n": 1, "stream": False}
        return msgspec.json.encode({**self.extra, **fixed, **asked, **fields})

    def _input(self, prompt: Prompt) -> dict[str, Any]:
        if self.rendering == "completion":
            return {"prompt": completion_text(prompt)}
        return {"messages": [{"role": turn.speaker, "content": turn.content} for turn in prompt.messages]}

    def completion(self, content: bytes, *, request: GenerateRequest) -> Completion:
        """Return the answer in a reply; raises LostCallError where it holds none, BackendError without token counts."""
        answer = self._read(content)
        choice = answer.choices[0]
        reason = _finish_reason(choice.finish_reason)
        text = choice.message.content if choice.message else choice.text
        if text is None:
            raise LostCallError("the answer has no text")
        kept = AnswerText(request.stop)
        stopped = kept.add(text.encode("utf-8", errors="replace"))
        usage = self._usage(answer, prompt=request.prompt, text=text)
        return Completion(
            text=kept.text(),
            finish_reason="stop" if stopped else reason,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
        )

    def top(self, content: bytes, *, prompt: Prompt) -> TopTokens:
        """Return the likeliest first tokens in a reply; raises what `completion` does."""
        answer = self._read(content)
        return TopTokens(
            logprobs=_first_tokens(answer.choices[0].logprobs),
            prompt_tokens=self._usage(answer, prompt=prompt, text="").prompt_tokens,
        )

    def reader_of_echo(self, option: str) -> Callable[[bytes], EchoScore | None]:
        """Return what reads an option's score from a reply."""
        return lambda content: echoed_score(self._read(content), option=option, lead=self.lead)

    def _read(self, content: bytes) -> Answer:
        answer = decode(content)
        self.names.note(answer.model)
        return answer

    def _usage(self, answer: Answer, *, prompt: Prompt, text: str) -> _Usage:
        if answer.usage is not None:
            return answer.usage
        if not self.estimate_usage:
            raise BackendError(
                "openai_http: the endpoint reports no token counts (usage); set openai_http.usage: estimated to have "
                "them estimated from the lengths of the texts"
            )
        return _Usage(prompt_tokens=estimate_prompt(prompt), completion_tokens=estimate_tokens(text))


def completion_text(prompt: Prompt) -> str:
    """Return a prompt as one document."""
    rendered = render_completion(prompt)
    return rendered.shared + rendered.head + rendered.rest


def decode(content: bytes) -> Answer:
    """Return a reply with at least one choice; raises LostCallError for anything else."""
    try:
        answer = _ANSWER.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LostCallError("the answer is cut short or not in the form of the API") from error
    if not answer.choices:
        raise LostCallError("the answer has no choices")
    return answer


def _finish_reason(reason: str | None) -> Literal["stop", "length"]:
    if reason == "stop":
        return "stop"
    if reason == "length":
        return "length"
    if reason == "content_filter":
        raise LostCallError("the endpoint's content filter withheld the answer", again=False)
    shown = reason if reason is None else reason[:LONGEST_REASON_CHARS]
    raise LostCallError(f"the answer ended for the reason {shown!r}, which is neither stop nor length")


def echoed_score(answer: Answer, *, option: str, lead: str) -> EchoScore | None:
    """Return an option's log-probability, the sum over its tokens; None where the reply does not tell.

    The option's tokens are the last ones before what was generated; their texts must be the option exactly. Some
    servers leave a token's leading space out, or show it as ▁ (SentencePiece).
    """
    found = answer.choices[0].logprobs
    if found is None or not found.tokens or not found.token_logprobs or answer.usage is None:
        return None
    end = len(found.tokens) - answer.usage.completion_tokens
    count = _tail_length(found.tokens[:end], option=option, lead=lead)
    values = [value for value in found.token_logprobs[end - count : end] if value is not None]
    if not count or len(values) < count or max(values) > HIGHEST_LOGPROB:
        return None
    tokens = answer.usage.prompt_tokens - count
    return EchoScore(logprob=rounded_logprob(math.fsum(values)), prompt_tokens=tokens)


def _tail_length(tokens: Sequence[str], *, option: str, lead: str) -> int:
    """Return how many tokens at the end make the option: with its leading space if they can, else without; or 0."""
    without = 0
    text = ""
    for count, token in enumerate(reversed(tokens), start=1):
        text = token.replace("▁", " ") + text
        if text == lead + option:
            return count
        if text == option:
            without = count
        if len(text) >= len(lead + option):
            break
    return without


def _first_tokens(found: _Logprobs | None) -> dict[str, float]:
    if found is None:
        return {}
    if found.content:
        # Two tokens may have the same text; the likelier one counts.
        pairs = sorted((one.logprob, one.token) for one in found.content[0].top_logprobs)
        return {token: logprob for logprob, token in pairs}
    return dict(found.top_logprobs[0] or {}) if found.top_logprobs else {}


def first_token_scores(top: Mapping[str, float], *, options: Sequence[str], lead: str) -> tuple[float, ...]:
    """Return the log-probability of each option's first token, in the order of the options.

    An option's first token is the longest of the likeliest tokens that begins it, all options with their leading
    space or, where that fails, all without. Raises ValueError, with what is wrong, for an option that none begins, for
    two options that begin with the same token, and for a number that is no log-probability.
    """
    shown = {token.replace("▁", " "): logprob for token, logprob in top.items()}
    found = [[_first_token(shown, before + option) for option in options] for before in (lead, "")]
    begins = min(found, key=lambda tokens: tokens.count(None))
    for option, token in zip(options, begins, strict=True):
        if token is None:
            raise ValueError(f'"{option}" begins with none of the {len(top)} likeliest tokens')
    if len(set(begins)) < len(begins):
        raise ValueError(f"two of the options {', '.join(options)} begin with the same token")
    values = [shown[str(token)] for token in begins]
    if max(values) > HIGHEST_LOGPROB:
        raise ValueError(f"{max(values):g} is no log-probability: it is above 0")
    return tuple(map(rounded_logprob, values))


def _first_token(top: Mapping[str, float], text: str) -> str | None:
    """Return the longest token that a text begins with and that tells it apart from other words."""
    fewest = min(FEWEST_CHARS, len(text.strip()))
    fitting = [token for token in top if text.startswith(token) and len(token.strip()) >= fewest]
    return max(fitting, key=len, default=None)


def tokenize_body(text: str, *, model: str) -> bytes:
    """Return the request for a text's tokens, in the words of vLLM and of llama.cpp's server at once."""
    vllm = {"model": model, "prompt": text, "add_special_tokens": False}
    return msgspec.json.encode({**vllm, "content": text, "add_special": False})


def token_count(content: bytes) -> int:
    """Return the number of tokens in the reply; raises LostCallError for anything else."""
    try:
        return len(msgspec.json.decode(content, type=_Tokens).tokens)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LostCallError("the answer of /tokenize holds no list `tokens`") from error


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has, by the length of its UTF-8 form; more than 0 but for an empty text."""
    return -(-len(text.encode("utf-8", errors="surrogatepass")) // BYTES_PER_TOKEN)


def estimate_prompt(prompt: Prompt) -> int:
    """Return about how many tokens a prompt has, without those of a chat template."""
    return sum(estimate_tokens(message.content) for message in prompt.messages)


def estimated_head(text: str, max_tokens: int) -> str:
    """Return the longest head of a text that has at most `max_tokens` tokens by that rule."""
    ends = list(accumulate(len(character.encode("utf-8", errors="surrogatepass")) for character in text))
    return text[: bisect_right(ends, max_tokens * BYTES_PER_TOKEN)]
