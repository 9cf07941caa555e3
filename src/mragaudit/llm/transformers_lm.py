"""The backend `transformers`: any decoder-only checkpoint under PyTorch, greedy, in batches, on CPU or GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from mragaudit.llm.base import rounded_logprob
from mragaudit.llm.checkpoint_prompts import Choice, Plan, PromptReader, require_chat_template
from mragaudit.llm.checkpoints import checkpoint_identity, find_checkpoint
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
)
from mragaudit.protocols import ChooseRequest, Completion, GenerateRequest, ModelIdentity, OptionScores

EXTRA = "transformers"


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
        tokenizer, chat = self._loaded.tokenizer, rendering == "chat"
        if chat:
            require_chat_template(tokenizer, checkpoint=checkpoint)
        self._reader = PromptReader(tokenizer, name=self.identity.model, chat=chat, context_tokens=self._context_tokens)

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
        plans = [self._reader.plan(request.prompt, position) for position, request in enumerate(requests)]
        for plan, request in zip(plans, requests, strict=True):
            self._reader.require_fit(plan, room=request.max_tokens)
        for batch in like_lengths(plans, length=lambda plan: len(plan.tokens), size=self._batch_size):
            yield from self._complete(batch, [requests[plan.position] for plan in batch])

    def choose(self, requests: Sequence[ChooseRequest]) -> Iterator[tuple[int, OptionScores]]:
        """Yield (position, log-probabilities of the options), a batch at a time, longest prompts first.

        In the completion rendering an option is preceded by a space. Raises RequestError, before any model call,
        for a prompt that with its longest option exceeds the context, and for an option without text.
        """
        choices = [self._reader.choice(request, position) for position, request in enumerate(requests)]
        for choice in choices:
            self._reader.require_fit(choice.plan, room=max(map(len, choice.options)))
        for batch in like_lengths(choices, length=lambda choice: len(choice.plan.tokens), size=self._batch_size):
            yield from self._score(batch)

    def _complete(self, batch: list[Plan], requests: list[GenerateRequest]) -> Iterator[tuple[int, Completion]]:
        loaded = self._loaded
        limits = [request.max_tokens for request in requests]
        watch = RowWatch(loaded=loaded, limits=limits, stops=[request.stop for request in requests])
        with lowest_call(self.meter, n_calls=len(batch)):
            ids, mask = padded([plan.tokens for plan in batch], pad=loaded.pad, side="left", device=loaded.device)
            inputs = {"input_ids": ids, "attention_mask": mask}
            answers = grow(loaded, watch, inputs=inputs, max_tokens=max(limits))
        for plan, answer in zip(batch, answers, strict=True):
            yield plan.position, completion_of(answer, prompt_tokens=len(plan.tokens))

    def _score(self, batch: list[Choice]) -> Iterator[tuple[int, OptionScores]]:
        rows = list(dict.fromkeys(row for choice in batch for row in _rows(choice)))
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


def _rows(choice: Choice) -> list[tuple[int, ...]]:
    """Return what has to be evaluated: the prompt with each option but its last token; equal ones once."""
    return list(dict.fromkeys((*choice.plan.tokens, *option[:-1]) for option in choice.options))


def _option_score(table: dict[tuple[int, ...], Any], plan: Plan, option: tuple[int, ...]) -> float:
    """Return the sum over an option's tokens, each scored by the row that ends before the last of them."""
    logprobs = table[(*plan.tokens, *option[:-1])][-len(option) :]
    return rounded_logprob(sum(float(logprobs[place, token]) for place, token in enumerate(option)))
