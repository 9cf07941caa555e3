"""Prompts as tokens of a checkpoint's own tokenizer, in either rendering: what its engines are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mragaudit.errors import BackendError, RequestError
from mragaudit.llm.base import check_prompt, longest_head
from mragaudit.llm.checkpoints import Checkpoint
from mragaudit.llm.rendering import Turn, render_completion, takes_parts, turns_of
from mragaudit.protocols import ChooseRequest, Prompt


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A prompt as text and tokens."""

    position: int
    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A prompt and its options, each as tokens."""

    plan: Plan
    options: tuple[tuple[int, ...], ...]


class PromptReader:
    """Turns prompts into tokens, and says by position which of them an engine cannot take."""

    def __init__(self, tokenizer: Any, *, name: str, chat: bool, context_tokens: int) -> None:
        """Read with a tokenizer of transformers; a prompt and its answer may have `context_tokens` together.

        `name` is the model's, for errors. Raises BackendError for a chat template that cannot be used.
        """
        self.context_tokens = context_tokens
        self.lead = "" if chat else " "
        """What stands between a prompt and its answer."""
        self._tokenizer = tokenizer
        self._name = name
        self._chat = chat
        self._parts = chat and self._takes_parts()

    def plan(self, prompt: Prompt, position: int) -> Plan:
        """Return a prompt's tokens; raises RequestError for one that no model, or not this one, can continue."""
        check_prompt(prompt, position=position)
        text = self._chat_text(prompt, position) if self._chat else completion_text(prompt)
        return Plan(position=position, text=text, tokens=self._tokens(text))

    def choice(self, request: ChooseRequest, position: int) -> Choice:
        """Return a prompt's and its options' tokens; raises RequestError also for an option without text."""
        require_options(request.options, position=position)
        plan = self.plan(request.prompt, position)
        return Choice(plan=plan, options=tuple(self._option_tokens(plan, option) for option in request.options))

    def require_fit(self, plan: Plan, *, room: int) -> None:
        """Raise RequestError for a prompt that with so many tokens of answer exceeds the context."""
        if len(plan.tokens) + room > self.context_tokens:
            raise RequestError(
                f"{len(plan.tokens)} tokens of prompt and {room} of answer exceed the context of "
                f"{self.context_tokens} tokens; raise context_tokens as far as the model allows, or shorten it",
                position=plan.position,
            )

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        return len(plain_tokens(self._tokenizer, text))

    def truncate(self, text: str, max_tokens: int) -> str:
        """Return the longest head of the text that has at most `max_tokens` tokens; never half a character."""
        ends = token_ends(self._tokenizer, text)
        return longest_head(text, max_tokens=max_tokens, ends=ends, count=self.count_tokens)

    def _chat_text(self, prompt: Prompt, position: int) -> str:
        from jinja2 import TemplateError  # noqa: PLC0415 - only the chat rendering needs it

        try:
            return self._templated(turns_of(prompt.messages, parts=self._parts))
        except (TemplateError, ValueError, TypeError, KeyError) as error:
            raise RequestError(f"the model's chat template refuses it: {error}", position=position) from error

    def _takes_parts(self) -> bool:
        from jinja2 import TemplateError  # noqa: PLC0415 - only the chat rendering needs it

        try:
            return takes_parts(self._templated)
        except (TemplateError, ValueError, TypeError, KeyError) as error:
            raise BackendError(f"model {self._name}: its chat template cannot be used: {error}") from error

    def _templated(self, turns: Sequence[Turn]) -> str:
        return str(self._tokenizer.apply_chat_template(list(turns), tokenize=False, add_generation_prompt=True))

    def _tokens(self, text: str) -> tuple[int, ...]:
        """Tokens of a whole input; a chat template has written the special ones itself."""
        if self._chat:
            return tuple(self._tokenizer.encode(text, add_special_tokens=False))
        return plain_tokens(self._tokenizer, text, whole=True)

    def _option_tokens(self, plan: Plan, option: str) -> tuple[int, ...]:
        """Tokens of an option behind its prompt; alone, where the tokenizer would join it to the prompt's end."""
        text = self.lead + option
        joined = self._tokens(plan.text + text)
        length = len(plan.tokens)
        if joined[:length] == plan.tokens and len(joined) > length:
            return joined[length:]
        return plain_tokens(self._tokenizer, text)


def require_chat_template(tokenizer: Any, *, checkpoint: Checkpoint) -> None:
    """Raise BackendError for a model that has no format for chats of its own."""
    if not tokenizer.chat_template:
        raise BackendError(f"model {checkpoint.name} has no chat template; set rendering: completion")


def require_options(options: Sequence[str], *, position: int) -> None:
    """Raise RequestError where there is nothing to choose from, or an option has no text."""
    if not options or not all(options):
        raise RequestError("options are missing, or an option has no text", position=position)


def completion_text(prompt: Prompt) -> str:
    """Return the whole prompt in the completion rendering."""
    rendered = render_completion(prompt)
    return rendered.shared + rendered.head + rendered.rest


def plain_tokens(tokenizer: Any, text: str, *, whole: bool = False) -> tuple[int, ...]:
    """Return the tokens of a text in which nothing stands for a special token.

    `whole`: with what the tokenizer puts around a whole input, such as a token for its beginning.
    """
    return tuple(tokenizer.encode(text, add_special_tokens=whole, split_special_tokens=True))


def token_ends(tokenizer: Any, text: str) -> list[int]:
    """Return the offset in characters at which each token of a text ends."""
    encoded = tokenizer(text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True)
    return [end for _, end in encoded["offset_mapping"]]


def decoded(tokenizer: Any, tokens: Sequence[int]) -> str:
    """Return the text of an answer's tokens, without special ones."""
    return str(tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def answer_text(text: str, *, stops: Sequence[str]) -> str:
    """Return a decoded answer up to its first stop string, without outer white space.

    Without a stop string, a last character of which not all bytes came is left out.
    """
    places = [place for stop in stops if stop and (place := text.find(stop)) >= 0]
    whole = text[: min(places)] if places else text.rstrip("\ufffd")
    return whole.strip()
