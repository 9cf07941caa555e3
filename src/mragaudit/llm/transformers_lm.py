"""The backend `transformers`: any decoder-only checkpoint under PyTorch, greedy, in batches, on CPU or GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mragaudit.errors import BackendError, RequestError
from mragaudit.llm.base import check_prompt, rounded_logprob
from mragaudit.llm.checkpoints import checkpoint_identity, find_checkpoint
from mragaudit.llm.rendering import Turn, render_completion, takes_parts, turns_of
from mragaudit.llm.torch_models import (
    BATCH_SIZE,
    Dtype,
    Loading,
    RowWatch,
    TorchBackend,
    completion_of,
    grow,
    like_lengths,
    lowest_call,
    padded,
    plain_tokens,
)
from mragaudit.protocols import (
    ChooseRequest,
    Completion,
    GenerateRequest,
    ModelIdentity,
    OptionScores,
    Prompt,
)

EXTRA = "transformers"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """A prompt as text and tokens."""

    position: int
    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Choice:
    """A prompt and its options, each as tokens."""

    plan: _Plan
    options: tuple[tuple[int, ...], ...]

    @property
    def rows(self) -> list[tuple[int, ...]]:
        """What has to be evaluated: the prompt with each option but its last token; equal ones once."""
        return list(dict.fromkeys((*self.plan.tokens, *option[:-1]) for option in self.options))


class TransformersBackend(TorchBackend):
    """A checkpoint under transformers.

    Prompts of like length are answered together, padded on the left. In a batch of another make-up low bits of an
    answer may differ; docs/decisions/0012 says what was measured.
    """

    def __init__(
        self,
        *,
        model: str,
        sha256: str | None = None,
        rendering: Literal["completion", "chat"] = "completion",
        context_tokens: int = 2048,
        threads: int = 1,
        revision: str | None = None,
        dtype: Dtype = "auto",
        device: str = "auto",
        quantisation: Literal["nf4"] | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        """Load the model.

        `model` is a checkpoint folder or a Hub id in the Hub's cache, `revision` a branch, tag or commit of the
        latter, `sha256` what find_checkpoint must find. Raises ConfigError for a model that is not there and
        a batch size out of bounds, MissingPackageError, BackendError where the hash differs, the model does not
        load, a GPU is missing, or there is no chat template for the rendering `chat`.
        """
        checkpoint = find_checkpoint(model, revision=revision, sha256=sha256)
        self.identity = self.identify(
            model=model, sha256=checkpoint.sha256, rendering=rendering, dtype=dtype, quantisation=quantisation
        )
        loading = Loading(dtype=dtype, device=device, quantisation=quantisation, threads=threads, extra=EXTRA)
        super().__init__(
            checkpoint,
            kind="AutoModelForCausalLM",
            loading=loading,
            batch_size=batch_size,
            context_tokens=context_tokens,
        )
        self._chat = rendering == "chat"
        if self._chat and not self._loaded.tokenizer.chat_template:
            raise BackendError(f"model {checkpoint.name} has no chat template; set rendering: completion")
        self._parts = self._chat and self._takes_parts()

    @staticmethod
    def identify(
        *,
        model: str,
        sha256: str | None = None,
        rendering: str = "completion",
        revision: str | None = None,
        dtype: str = "auto",
        quantisation: str | None = None,
        **_others: object,
    ) -> ModelIdentity:
        """Return the identity without loading: the pinned hash, else the checkpoint's; and the precision."""
        return checkpoint_identity(
            backend="transformers",
            model=model,
            rendering=rendering,
            sha256=sha256,
            revision=revision,
            dtype=dtype,
            quantisation=quantisation,
        )

    def generate(self, requests: Sequence[GenerateRequest]) -> Iterator[tuple[int, Completion]]:
        """Yield (position, greedy answer), a batch at a time, longest prompts first.

        An answer ends before a stop string, at a token that ends the turn, or after max_tokens. Raises
        RequestError, before any model call, for a prompt that with max_tokens exceeds the context.
        """
        plans = [self._plan(request.prompt, position) for position, request in enumerate(requests)]
        for plan, request in zip(plans, requests, strict=True):
            self._check_fits(plan, room=request.max_tokens)
        for batch in like_lengths(plans, length=lambda plan: len(plan.tokens), size=self._batch_size):
            yield from self._complete(batch, [requests[plan.position] for plan in batch])

    def choose(self, requests: Sequence[ChooseRequest]) -> Iterator[tuple[int, OptionScores]]:
        """Yield (position, log-probabilities of the options), a batch at a time, longest prompts first.

        In the completion rendering an option is preceded by a space. Raises RequestError, before any model call,
        for a prompt that with its longest option exceeds the context, and for an option without text.
        """
        choices = [self._choice(request, position) for position, request in enumerate(requests)]
        for choice in choices:
            self._check_fits(choice.plan, room=max(map(len, choice.options)))
        for batch in like_lengths(choices, length=lambda choice: len(choice.plan.tokens), size=self._batch_size):
            yield from self._score(batch)

    def _plan(self, prompt: Prompt, position: int) -> _Plan:
        check_prompt(prompt, position=position)
        text = self._chat_text(prompt, position) if self._chat else _completion_text(prompt)
        return _Plan(position=position, text=text, tokens=self._tokens(text))

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
            raise BackendError(f"model {self.identity.model}: its chat template cannot be used: {error}") from error

    def _templated(self, turns: Sequence[Turn]) -> str:
        return str(self._loaded.tokenizer.apply_chat_template(list(turns), tokenize=False, add_generation_prompt=True))

    def _tokens(self, text: str) -> tuple[int, ...]:
        """Tokens of a whole input; a chat template has written the special ones itself."""
        if self._chat:
            return tuple(self._loaded.tokenizer.encode(text, add_special_tokens=False))
        return plain_tokens(self._loaded.tokenizer, text, whole=True)

    def _choice(self, request: ChooseRequest, position: int) -> _Choice:
        if not request.options or not all(request.options):
            raise RequestError("options are missing, or an option has no text", position=position)
        plan = self._plan(request.prompt, position)
        return _Choice(plan=plan, options=tuple(self._option_tokens(plan, option) for option in request.options))

    def _option_tokens(self, plan: _Plan, option: str) -> tuple[int, ...]:
        """Tokens of an option behind its prompt; alone, where the tokenizer would join it to the prompt's end."""
        text = option if self._chat else f" {option}"
        joined = self._tokens(plan.text + text)
        length = len(plan.tokens)
        if joined[:length] == plan.tokens and len(joined) > length:
            return joined[length:]
        return plain_tokens(self._loaded.tokenizer, text)

    def _check_fits(self, plan: _Plan, *, room: int) -> None:
        if len(plan.tokens) + room > self._context_tokens:
            raise RequestError(
                f"{len(plan.tokens)} tokens of prompt and {room} of answer exceed the context of "
                f"{self._context_tokens} tokens; raise context_tokens as far as the model allows, or shorten it",
                position=plan.position,
            )

    def _complete(self, batch: list[_Plan], requests: list[GenerateRequest]) -> Iterator[tuple[int, Completion]]:
        loaded = self._loaded
        limits = [request.max_tokens for request in requests]
        watch = RowWatch(loaded=loaded, limits=limits, stops=[request.stop for request in requests])
        with lowest_call(self.meter, n_calls=len(batch)):
            ids, mask = padded([plan.tokens for plan in batch], pad=loaded.pad, side="left", device=loaded.device)
            inputs = {"input_ids": ids, "attention_mask": mask}
            answers = grow(loaded, watch, inputs=inputs, max_tokens=max(limits))
        for plan, answer in zip(batch, answers, strict=True):
            yield plan.position, completion_of(answer, prompt_tokens=len(plan.tokens))

    def _score(self, batch: list[_Choice]) -> Iterator[tuple[int, OptionScores]]:
        rows = list(dict.fromkeys(row for choice in batch for row in choice.rows))
        longest = max(len(option) for choice in batch for option in choice.options)
        with lowest_call(self.meter, n_calls=len(batch)):
            table = dict(zip(rows, self._last_logprobs(rows, n_last=longest), strict=True))
            scored = [[_option_score(table, choice.plan, option) for option in choice.options] for choice in batch]
        for choice, logprobs in zip(batch, scored, strict=True):
            yield (
                choice.plan.position,
                OptionScores(logprobs=tuple(logprobs), prompt_tokens=len(choice.plan.tokens)),
            )

    def _last_logprobs(self, rows: Sequence[Sequence[int]], *, n_last: int) -> Any:
        """Return log-probabilities, shape (n_rows, n_last, n_vocabulary), of what follows the last tokens."""
        loaded = self._loaded
        ids, mask = padded(rows, pad=loaded.pad, side="left", device=loaded.device)
        # Padding must not move a prompt: positions count from its own first token.
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        output = loaded.model(
            input_ids=ids, attention_mask=mask, position_ids=positions, logits_to_keep=n_last, use_cache=False
        )
        return output.logits[:, -n_last:].double().log_softmax(-1)


def _completion_text(prompt: Prompt) -> str:
    rendered = render_completion(prompt)
    return rendered.shared + rendered.head + rendered.rest


def _option_score(table: dict[tuple[int, ...], Any], plan: _Plan, option: tuple[int, ...]) -> float:
    """Return the sum over an option's tokens, each scored by the row that ends before the last of them."""
    logprobs = table[(*plan.tokens, *option[:-1])][-len(option) :]
    return rounded_logprob(sum(float(logprobs[place, token]) for place, token in enumerate(option)))
