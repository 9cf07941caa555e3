"""The backend `nllb`: a translation model of the NLLB family (M2M-100's architecture), for the translators alone.

The weights that Meta published, NLLB-200, are under CC-BY-NC-4.0: no commercial use.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mragaudit.errors import RequestError
from mragaudit.llm.base import check_prompt, rounded_logprob
from mragaudit.llm.checkpoint_prompts import plain_tokens
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
from mragaudit.protocols import (
    TRANSLATION,
    ChooseRequest,
    Completion,
    GenerateRequest,
    ModelIdentity,
    OptionScores,
    Prompt,
)

logger = logging.getLogger(__name__)

EXTRA = "nllb"
LICENCE = "CC-BY-NC-4.0"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """A translation task as tokens."""

    position: int
    source: tuple[int, ...]
    """Language code, text, end."""
    opening: tuple[int, ...]
    """How the decoder begins: its start token and the code of the language asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    """A translation whose tokens are to be scored."""

    plan: _Plan
    option: tuple[int, ...]


class NllbBackend(TorchBackend):
    """A translation model that reads the task of a prompt and none of its messages."""

    def __init__(
        self,
        *,
        model: str,
        sha256: str | None = None,
        rendering: str = TRANSLATION,  # noqa: ARG002  # taken so that configs fit every backend
        context_tokens: int = 1024,
        threads: int = 1,
        revision: str | None = None,
        dtype: Dtype = "auto",
        device: str = "auto",
        batch_size: int = BATCH_SIZE,
    ) -> None:
        """Load the model; parameters and errors as for the backend `transformers`."""
        checkpoint = find_checkpoint(model, revision=revision, sha256=sha256)
        self.identity = self.identify(model=model, sha256=checkpoint.sha256, dtype=dtype)
        loading = Loading(dtype=dtype, device=device, quantisation=None, threads=threads, extra=EXTRA)
        super().__init__(
            checkpoint,
            kind="AutoModelForSeq2SeqLM",
            loading=loading,
            batch_size=batch_size,
            context_tokens=context_tokens,
        )
        logger.warning("model %s: NLLB-200 is licensed under %s: non-commercial use only", checkpoint.name, LICENCE)

    @staticmethod
    def identify(
        *,
        model: str,
        sha256: str | None = None,
        revision: str | None = None,
        dtype: str = "auto",
        **_others: object,
    ) -> ModelIdentity:
        """Return the identity without loading: the pinned hash, else the checkpoint's; and the precision."""
        return checkpoint_identity(
            backend="nllb", model=model, rendering=TRANSLATION, sha256=sha256, revision=revision, dtype=dtype
        )

    def generate(self, requests: Sequence[GenerateRequest]) -> Iterator[tuple[int, Completion]]:
        """Yield (position, greedy translation), a batch at a time, longest texts first.

        Raises RequestError, before any model call, for a prompt without a translation task, a language that the
        model does not know, and a text or an answer longer than the context.
        """
        plans = [self._plan(request.prompt, position) for position, request in enumerate(requests)]
        for plan, request in zip(plans, requests, strict=True):
            self._check_fits(plan, room=request.max_tokens)
        for batch in like_lengths(plans, length=lambda plan: len(plan.source), size=self._batch_size):
            yield from self._complete(batch, [requests[plan.position] for plan in batch])

    def choose(self, requests: Sequence[ChooseRequest]) -> Iterator[tuple[int, OptionScores]]:
        """Yield (position, log-probabilities of the options as translations of the text), errors as in generate."""
        plans = [self._plan(request.prompt, position) for position, request in enumerate(requests)]
        options = [self._options(request, position) for position, request in enumerate(requests)]
        for plan, tokens in zip(plans, options, strict=True):
            self._check_fits(plan, room=max(map(len, tokens)))
        for batch in like_lengths(plans, length=lambda plan: len(plan.source), size=self._batch_size):
            yield from self._score(batch, options)

    def _plan(self, prompt: Prompt, position: int) -> _Plan:
        check_prompt(prompt, position=position)
        task = prompt.task
        if task is None:
            raise RequestError(
                "nllb reads translation tasks, and this prompt has none: it is no translation, or a file in "
                'resources/languages gives no "flores" code',
                position=position,
            )
        text = plain_tokens(self._loaded.tokenizer, task.text)
        end = self._loaded.tokenizer.eos_token_id
        start = self._loaded.model.generation_config.decoder_start_token_id
        return _Plan(
            position=position,
            source=(self._language(task.source, position), *text, end),
            opening=(end if start is None else start, self._language(task.target, position)),
        )

    def _language(self, code: str, position: int) -> int:
        token = self._loaded.tokenizer.convert_tokens_to_ids(code)
        if token is None or token == self._loaded.tokenizer.unk_token_id:
            raise RequestError(f"{self.identity.model} has no language {code}", position=position)
        return int(token)

    def _options(self, request: ChooseRequest, position: int) -> list[tuple[int, ...]]:
        options = [plain_tokens(self._loaded.tokenizer, option) for option in request.options]
        if not options or not all(options):
            raise RequestError("options are missing, or an option has no text", position=position)
        return options

    def _check_fits(self, plan: _Plan, *, room: int) -> None:
        limit = self._context_tokens
        if len(plan.source) > limit or len(plan.opening) + room > limit:
            raise RequestError(
                f"{len(plan.source)} tokens of text and {room} of translation: each may have the context of "
                f"{limit} tokens at most; shorten the text or lower max_tokens",
                position=plan.position,
            )

    def _complete(self, batch: list[_Plan], requests: list[GenerateRequest]) -> Iterator[tuple[int, Completion]]:
        limits = [request.max_tokens for request in requests]
        watch = RowWatch(loaded=self._loaded, limits=limits, stops=[request.stop for request in requests])
        with lowest_call(self.meter, n_calls=len(batch)):
            inputs = {**self._encoder_inputs(batch), **self._decoder_inputs([plan.opening for plan in batch])}
            answers = grow(self._loaded, watch, inputs=inputs, max_tokens=max(limits))
        for plan, answer in zip(batch, answers, strict=True):
            yield plan.position, completion_of(answer, prompt_tokens=len(plan.source))

    def _score(self, batch: list[_Plan], options: list[list[tuple[int, ...]]]) -> Iterator[tuple[int, OptionScores]]:
        rows = [_Row(plan=plan, option=option) for plan in batch for option in options[plan.position]]
        with lowest_call(self.meter, n_calls=len(batch)):
            scores = iter(self._row_scores(rows))
        for plan in batch:
            logprobs = tuple(next(scores) for _ in options[plan.position])
            yield plan.position, OptionScores(logprobs=logprobs, prompt_tokens=len(plan.source))

    def _row_scores(self, rows: list[_Row]) -> list[float]:
        decoder = self._decoder_inputs([(*row.plan.opening, *row.option[:-1]) for row in rows])
        output = self._loaded.model(**self._encoder_inputs([row.plan for row in rows]), **decoder, use_cache=False)
        return [_row_score(row, logits) for row, logits in zip(rows, output.logits, strict=True)]

    def _encoder_inputs(self, plans: Sequence[_Plan]) -> dict[str, Any]:
        sources = [plan.source for plan in plans]
        ids, mask = padded(sources, pad=self._loaded.pad, side="right", device=self._loaded.device)
        return {"input_ids": ids, "attention_mask": mask}

    def _decoder_inputs(self, rows: Sequence[Sequence[int]]) -> dict[str, Any]:
        ids, _ = padded(rows, pad=self._loaded.pad, side="right", device=self._loaded.device)
        return {"decoder_input_ids": ids}


def _row_score(row: _Row, logits: Any) -> float:
    """Return the sum over an option's tokens; what the decoder says after its opening scores the first of them."""
    first = len(row.plan.opening) - 1
    logprobs = logits[first : first + len(row.option)].double().log_softmax(-1)
    return rounded_logprob(sum(float(logprobs[place, token]) for place, token in enumerate(row.option)))
