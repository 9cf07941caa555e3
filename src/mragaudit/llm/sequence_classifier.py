"""The backend `sequence_classifier`: a classifier of whole texts under PyTorch, such as Prompt Guard, as a judge.

It writes no text: `generate` names the likeliest class, `choose` gives the log-probabilities of classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mragaudit.errors import BackendError, ConfigError, RequestError, did_you_mean
from mragaudit.llm.base import check_prompt, rounded_logprob
from mragaudit.llm.checkpoint_prompts import plain_tokens
from mragaudit.llm.checkpoints import checkpoint_identity, find_checkpoint
from mragaudit.llm.torch_models import (
    BATCH_SIZE,
    Dtype,
    Loading,
    TorchBackend,
    like_lengths,
    lowest_call,
    padded,
)
from mragaudit.protocols import (
    CLASSIFICATION,
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
    """A text as windows of tokens that each fit into the model."""

    position: int
    windows: tuple[tuple[int, ...], ...]

    @property
    def n_tokens(self) -> int:
        return sum(map(len, self.windows))


class SequenceClassifierBackend(TorchBackend):
    """A classifier that reads the last message of a prompt and none of those before it.

    Texts of like length are classified together; the low bits of a log-probability may differ in another batch.
    """

    def __init__(
        self,
        *,
        model: str,
        sha256: str | None = None,
        rendering: str = CLASSIFICATION,  # noqa: ARG002  # taken so that configs fit every backend
        context_tokens: int = 512,
        threads: int = 1,
        revision: str | None = None,
        dtype: Dtype = "auto",
        device: str = "auto",
        batch_size: int = BATCH_SIZE,
        labels: tuple[str, ...] = (),
        alarm: str | None = None,
    ) -> None:
        """Load the model.

        `labels` names the classes in the checkpoint's order, for one that calls them LABEL_0 and so on. A text longer
        than the model is cut into windows and gets the scores of the one in which the class `alarm` is likeliest;
        without `alarm` it is refused. Other parameters and errors as for the backend `transformers`; ConfigError also
        for labels that are not as many as the classes, and an alarm that is none of them.
        """
        checkpoint = find_checkpoint(model, revision=revision, sha256=sha256)
        self.identity = self.identify(model=model, sha256=checkpoint.sha256, dtype=dtype, labels=labels, alarm=alarm)
        loading = Loading(dtype=dtype, device=device, quantisation=None, threads=threads, extra=EXTRA)
        super().__init__(
            checkpoint,
            kind="AutoModelForSequenceClassification",
            loading=loading,
            batch_size=batch_size,
            context_tokens=context_tokens,
        )
        self._labels = _class_names(self._loaded.model.config.id2label, given=labels)
        self._alarm = None if alarm is None else _class_place(alarm, self._labels)
        self._around = _special_tokens(self._loaded.tokenizer, model=checkpoint.name)

    @staticmethod
    def identify(
        *,
        model: str,
        sha256: str | None = None,
        revision: str | None = None,
        dtype: str = "auto",
        labels: Sequence[str] = (),
        alarm: str | None = None,
        **_others: object,
    ) -> ModelIdentity:
        """Return the identity without loading: hash, precision, and what else decides a text's scores."""
        known = checkpoint_identity(
            backend="sequence_classifier",
            model=model,
            rendering=CLASSIFICATION,
            sha256=sha256,
            revision=revision,
            dtype=dtype,
        )
        named = [f"labels={','.join(labels)}"] if labels else []
        ranked = [f"alarm={alarm}"] if alarm else []
        return msgspec.structs.replace(known, revision=" ".join([known.revision, *named, *ranked]))

    def generate(self, requests: Sequence[GenerateRequest]) -> Iterator[tuple[int, Completion]]:
        """Yield (position, name of the likeliest class), a batch at a time, longest texts first.

        Raises RequestError, before any model call, for a text longer than the model where no alarm is set.
        """
        for plan, scores in self._classify([request.prompt for request in requests]):
            likeliest = max(range(len(scores)), key=scores.__getitem__)
            yield (
                plan.position,
                Completion(
                    text=self._labels[likeliest],
                    finish_reason="stop",
                    prompt_tokens=plan.n_tokens,
                    completion_tokens=1,
                ),
            )

    def choose(self, requests: Sequence[ChooseRequest]) -> Iterator[tuple[int, OptionScores]]:
        """Yield (position, log-probabilities of the classes that the options name), errors as in generate.

        Raises RequestError, before any model call, for an option that is no class.
        """
        places = [self._places(request, position) for position, request in enumerate(requests)]
        for plan, scores in self._classify([request.prompt for request in requests]):
            chosen = tuple(scores[place] for place in places[plan.position])
            yield plan.position, OptionScores(logprobs=chosen, prompt_tokens=plan.n_tokens)

    def _places(self, request: ChooseRequest, position: int) -> list[int]:
        try:
            return [_class_place(option, self._labels) for option in request.options]
        except ConfigError as error:
            raise RequestError(str(error), position=position) from error

    def _classify(self, prompts: Sequence[Prompt]) -> Iterator[tuple[_Plan, tuple[float, ...]]]:
        plans = [self._plan(prompt, position) for position, prompt in enumerate(prompts)]
        for batch in like_lengths(plans, length=lambda plan: plan.n_tokens, size=self._batch_size):
            with lowest_call(self.meter, n_calls=len(batch)):
                scores = self._window_scores([window for plan in batch for window in plan.windows])
            for plan in batch:
                own = [next(scores) for _ in plan.windows]
                yield plan, max(own, key=lambda one: one[self._alarm or 0])

    def _plan(self, prompt: Prompt, position: int) -> _Plan:
        check_prompt(prompt, position=position)
        tokens = plain_tokens(self._loaded.tokenizer, prompt.messages[-1].content)
        before, after = self._around
        room = self._context_tokens - len(before) - len(after)
        if len(tokens) > room and self._alarm is None:
            raise RequestError(
                f"{len(tokens)} tokens of text exceed the {room} that the model reads at once; set the role's option "
                "alarm to the class that must not be missed, and longer texts are read in windows",
                position=position,
            )
        starts = range(0, max(1, len(tokens)), room)
        return _Plan(
            position=position, windows=tuple((*before, *tokens[start : start + room], *after) for start in starts)
        )

    def _window_scores(self, windows: Sequence[Sequence[int]]) -> Iterator[tuple[float, ...]]:
        """Yield the log-probabilities of all classes, a window each; no more than batch_size windows at a time."""
        found: list[tuple[float, ...]] = []
        for start in range(0, len(windows), self._batch_size):
            rows = windows[start : start + self._batch_size]
            ids, mask = padded(rows, pad=self._loaded.pad, side="right", device=self._loaded.device)
            logits = self._loaded.model(input_ids=ids, attention_mask=mask).logits
            for row in logits.double().log_softmax(-1).tolist():
                found.append(tuple(rounded_logprob(value) for value in row))
        return iter(found)


def _class_names(known: dict[int, str], *, given: Sequence[str]) -> tuple[str, ...]:
    names = tuple(str(known[place]) for place in sorted(known))
    if given and len(given) != len(names):
        raise ConfigError(
            f"labels has {len(given)} names, the model {len(names)} classes: {', '.join(names)}; name each, in order"
        )
    return tuple(given) or names


def _class_place(name: str, labels: Sequence[str]) -> int:
    """Return the place of a class by name, whatever its case."""
    folded = [label.casefold() for label in labels]
    if name.casefold() not in folded:
        raise ConfigError(
            f'the model has no class "{name}"; {did_you_mean(name, labels)}; the role\'s option labels names them anew'
        )
    return folded.index(name.casefold())


def _special_tokens(tokenizer: Any, *, model: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return what the tokenizer puts before and behind a text."""
    whole, bare = plain_tokens(tokenizer, "a", whole=True), plain_tokens(tokenizer, "a")
    for start in range(len(whole) - len(bare) + 1):
        if whole[start : start + len(bare)] == bare:
            return whole[:start], whole[start + len(bare) :]
    raise BackendError(f"model {model}: its tokenizer changes a text where it stands as a whole input")
