"""The backend `vllm`: any decoder-only checkpoint under vLLM's engine in this process, greedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from mragaudit.errors import BackendError
from mragaudit.llm.base import grouped, rounded_logprob
from mragaudit.llm.checkpoint_prompts import (
    Choice,
    Plan,
    PromptReader,
    answer_text,
    decoded,
    require_chat_template,
    require_options,
)
from mragaudit.llm.checkpoints import checkpoint_identity, find_checkpoint
from mragaudit.llm.vllm_engine import Dtype, Engine, EngineAnswer, EngineCall, Loading, load_tokenizer
from mragaudit.protocols import (
    ChooseRequest,
    Completion,
    GenerateRequest,
    Meter,
    ModelIdentity,
    OptionScores,
    Prompt,
    SelectRequest,
)

BATCH_CALLS = 64
"""Calls after which the journal must be on disk, for an engine that batches by itself (pipeline.md, Journal)."""
BATCH_SECONDS = 5.0
"""Seconds of model time after which it must be, for the same."""
MAX_NUM_SEQS = 64
"""A killed run makes the calls under way again, so no more than a batch of the journal unless the config says so."""


class VllmBackend:
    """A checkpoint under vLLM.

    The engine batches by itself: with other calls beside it, low bits of an answer may differ.
    docs/decisions/0014 says what was measured.
    """

    batch_calls = BATCH_CALLS
    batch_seconds = BATCH_SECONDS

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
        quantisation: str | None = None,
        max_num_seqs: int = MAX_NUM_SEQS,
        tensor_parallel_size: int = 1,
        gpu_memory_utilization: float = 0.9,
        kv_cache_gb: float | None = None,
        enforce_eager: bool = False,
        batch_invariant: bool = False,
        seed: int = 0,
    ) -> None:
        """Load the model; docs/models.md says what each option does.

        Raises ConfigError for a model that is not there and an option out of bounds, MissingPackageError,
        BackendError where the hash differs, vLLM cannot load the model on this machine, or there is no chat
        template for the rendering `chat`.
        """
        loading = Loading(
            dtype=dtype,
            quantisation=quantisation,
            context_tokens=context_tokens,
            max_num_seqs=max_num_seqs,
            tensor_parallel_size=tensor_parallel_size,
            gpu_memory_utilization=gpu_memory_utilization,
            kv_cache_gb=kv_cache_gb,
            enforce_eager=enforce_eager,
            batch_invariant=batch_invariant,
            seed=seed,
            threads=threads,
        )
        checkpoint = find_checkpoint(model, revision=revision, sha256=sha256)
        self.identity = self.identify(
            model=model,
            sha256=checkpoint.sha256,
            rendering=rendering,
            dtype=dtype,
            quantisation=quantisation,
            batch_invariant=batch_invariant,
        )
        self.meter = Meter()
        self._tokenizer = load_tokenizer(checkpoint)
        if rendering == "chat":
            require_chat_template(self._tokenizer, checkpoint=checkpoint)
        self._engine = Engine(checkpoint, loading=loading, meter=self.meter)
        self._reader = PromptReader(
            self._tokenizer,
            name=self.identity.model,
            chat=rendering == "chat",
            context_tokens=self._engine.context_tokens,
        )

    @staticmethod
    def identify(
        *,
        model: str,
        sha256: str | None = None,
        rendering: str = "completion",
        revision: str | None = None,
        dtype: str = "auto",
        quantisation: str | None = None,
        batch_invariant: bool = False,
        **_others: object,
    ) -> ModelIdentity:
        """Return the identity without loading: the pinned hash, else the checkpoint's; and how it is computed."""
        return checkpoint_identity(
            backend="vllm",
            model=model,
            rendering=rendering,
            sha256=sha256,
            revision=revision,
            dtype=dtype,
            quantisation=quantisation,
            further=["batch-invariant"] if batch_invariant else [],
        )

    def generate(self, requests: Sequence[GenerateRequest]) -> Iterator[tuple[int, Completion]]:
        """Yield (position, greedy answer) as they finish.

        An answer ends before a stop string, at a token that ends the turn, or after max_tokens. Raises
        RequestError, before any model call, for a prompt that with max_tokens exceeds the context.
        """
        plans = [self._reader.plan(request.prompt, position) for position, request in enumerate(requests)]
        for plan, request in zip(plans, requests, strict=True):
            self._reader.require_fit(plan, room=request.max_tokens)
        order = _neighbours([request.prompt for request in requests])
        calls = [_generation(plans[position], requests[position]) for position in order]
        for place, answer in self._engine.run(calls):
            position = order[place]
            yield position, self._completion(answer, plan=plans[position], stops=requests[position].stop)

    def choose(self, requests: Sequence[ChooseRequest]) -> Iterator[tuple[int, OptionScores]]:
        """Yield (position, log-probabilities of the options) as they finish.

        In the completion rendering an option is preceded by a space. Raises RequestError, before any model call,
        for a prompt that with its longest option exceeds the context, and for an option without text.
        """
        choices = [self._reader.choice(request, position) for position, request in enumerate(requests)]
        for choice in choices:
            self._reader.require_fit(choice.plan, room=max(map(len, choice.options)))
        order = _neighbours([request.prompt for request in requests])
        heads = [(position, head) for position in order for head in _heads(choices[position])]
        found: list[dict[tuple[int, ...], EngineAnswer]] = [{} for _ in choices]
        for place, answer in self._engine.run([_scoring(choices[position], head) for position, head in heads]):
            position, head = heads[place]
            found[position][head] = answer
            if len(found[position]) == len(_heads(choices[position])):
                yield position, _scores(choices[position], found[position])

    def select(self, requests: Sequence[SelectRequest]) -> Iterator[tuple[int, Completion]]:
        """Yield (position, the option that greedy decoding comes to where no other text is allowed).

        Raises RequestError, before any model call, for a prompt that with its longest option exceeds the context,
        and for an option without text.
        """
        plans = [self._reader.plan(request.prompt, position) for position, request in enumerate(requests)]
        for plan, request in zip(plans, requests, strict=True):
            require_options(request.options, position=plan.position)
            self._reader.require_fit(plan, room=_most_tokens(request))
        order = _neighbours([request.prompt for request in requests])
        calls = [self._selection(plans[position], requests[position]) for position in order]
        for place, answer in self._engine.run(calls):
            position = order[place]
            reply = self._completion(answer, plan=plans[position], stops=())
            if reply.text not in requests[position].options:
                raise BackendError(f'vLLM replied "{reply.text}" where only {requests[position].options} were allowed')
            yield position, reply

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        return self._reader.count_tokens(text)

    def truncate(self, text: str, max_tokens: int) -> str:
        """Return the longest head of the text that has at most `max_tokens` tokens; never half a character."""
        return self._reader.truncate(text, max_tokens)

    def close(self) -> None:
        """Free the model; may be called twice."""
        self._engine.close()

    def _selection(self, plan: Plan, request: SelectRequest) -> EngineCall:
        from vllm.sampling_params import StructuredOutputsParams  # noqa: PLC0415 - optional package

        allowed = StructuredOutputsParams(choice=[self._reader.lead + option for option in request.options])
        return EngineCall(
            tokens=plan.tokens, sampling={"max_tokens": _most_tokens(request), "structured_outputs": allowed}
        )

    def _completion(self, answer: EngineAnswer, *, plan: Plan, stops: Sequence[str]) -> Completion:
        text = decoded(self._tokenizer, answer.tokens[: answer.n_text_tokens])
        return Completion(
            text=answer_text(text, stops=stops),
            finish_reason=answer.finish_reason,
            prompt_tokens=len(plan.tokens),
            completion_tokens=len(answer.tokens),
        )


def _neighbours(prompts: Sequence[Prompt]) -> list[int]:
    """Return all positions, prompts that begin alike next to each other: the engine keeps what they share."""
    return grouped(
        [(prompt.messages[: prompt.shared], prompt.messages[-1].content[: prompt.head]) for prompt in prompts]
    )


def _generation(plan: Plan, request: GenerateRequest) -> EngineCall:
    stops = [stop for stop in request.stop if stop]
    return EngineCall(tokens=plan.tokens, sampling={"max_tokens": request.max_tokens, "stop": stops})


def _most_tokens(request: SelectRequest) -> int:
    """Tokens that an option may take however it is cut into them, a space before it, and one that ends the answer."""
    return max(len(option.encode()) for option in request.options) + 2


def _heads(choice: Choice) -> list[tuple[int, ...]]:
    """Return what of the options may have been said when a token of theirs is scored, each once, nothing first."""
    heads = (option[:length] for option in choice.options for length in range(len(option)))
    return list(dict.fromkeys(heads))


def _scoring(choice: Choice, head: tuple[int, ...]) -> EngineCall:
    """Ask for one token behind prompt and head, and for the probability there of each that an option has there."""
    length = len(head)
    following = {option[length] for option in choice.options if option[:length] == head and len(option) > length}
    sampling: dict[str, Any] = {"max_tokens": 1, "logprob_token_ids": sorted(following), "detokenize": False}
    return EngineCall(tokens=(*choice.plan.tokens, *head), sampling=sampling)


def _scores(choice: Choice, found: dict[tuple[int, ...], EngineAnswer]) -> OptionScores:
    sums = (
        sum(found[option[:length]].logprobs[token] for length, token in enumerate(option)) for option in choice.options
    )
    return OptionScores(logprobs=tuple(rounded_logprob(value) for value in sums), prompt_tokens=len(choice.plan.tokens))
