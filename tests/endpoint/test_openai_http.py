"""What the backend asks of a server and makes of its answers."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoint_requests import OPTIONS, Make, ask, asks, choice, prompt, texts
from fake_openai import FakeServer, Fault, digest_words, logprob_of, tokens_of

from mragaudit.config import load_settings, read_settings
from mragaudit.config.settings import Role
from mragaudit.errors import BackendError, ConfigError, RequestError
from mragaudit.llm.openai_http import OpenAIHttpBackend
from mragaudit.protocols import Completion, GenerateRequest, OptionScores
from mragaudit.stages.models import LANGUAGE_ROLES, identity_of, load_backend, require_options

pytestmark = pytest.mark.http

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


def scores(backend: OpenAIHttpBackend, turn: str) -> OptionScores:
    [(_, found)] = backend.choose([choice(turn)])
    assert isinstance(found, OptionScores)
    return found


def test_a_completion_comes_back_with_its_reason_and_the_servers_counts(server: FakeServer, make: Make) -> None:
    [(_, answer)] = make(server.base_url).generate([ask("Which city?")])
    text = "Rules.\n\nWhich city?"
    assert answer == Completion(text=digest_words(text), finish_reason="stop", prompt_tokens=3, completion_tokens=5)


def test_a_chat_comes_back_likewise(server: FakeServer, make: Make) -> None:
    backend = make(server.base_url, rendering="chat")
    assert texts(backend.generate([ask("Which city?")])) == {0: digest_words("Which city?")}
    assert server.seen[-1].path == "/v1/chat/completions"


def test_an_answer_cut_by_its_limit_says_so(server: FakeServer, make: Make) -> None:
    [(_, answer)] = make(server.base_url).generate([ask("Which city?", max_tokens=2)])
    assert isinstance(answer, Completion)
    assert (answer.finish_reason, answer.completion_tokens) == ("length", 2)


def test_echo_sums_the_log_probabilities_of_an_options_tokens(server: FakeServer, make: Make) -> None:
    found = scores(make(server.base_url), "Allowed?")
    text = "Rules.\n\nAllowed?"
    expected = [logprob_of(f" {option}", before=text) for option in OPTIONS]
    assert list(found.logprobs) == pytest.approx(expected)
    assert found.prompt_tokens == len(tokens_of(text))


def test_top_takes_the_log_probabilities_of_the_options_first_tokens(server: FakeServer, make: Make) -> None:
    found = scores(make(server.base_url, logprobs="top"), "Allowed?")
    expected = [logprob_of(f" {option}", before="Rules.\n\nAllowed?") for option in OPTIONS]
    assert list(found.logprobs) == pytest.approx(expected)


def test_a_chat_is_scored_by_its_likeliest_tokens_without_a_leading_space(server: FakeServer, make: Make) -> None:
    found = scores(make(server.base_url, rendering="chat"), "Allowed?")
    before = '[{"role": "system", "content": "Rules."}, {"role": "user", "content": "Allowed?"}]'
    assert list(found.logprobs) == pytest.approx([logprob_of(option, before=before) for option in OPTIONS])


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ({"echo": False}, {}, 'Only no echo is supported"; if it echoes no log-probabilities, set .*logprobs: top'),
        (
            {"logprobs": False},
            {},
            'no log-probabilities of its own for the option "BLOCK"; if it echoes .*judge.mode: parse',
        ),
        (
            {"logprobs": False},
            {"logprobs": "top"},
            '"BLOCK" begins with none of the 0 likeliest tokens; .*judge.mode: parse',
        ),
        ({}, {"logprobs": "top", "top_logprobs": 1}, "begins with none of the 1 likeliest tokens; .*top_logprobs"),
    ],
)
def test_an_endpoint_without_log_probabilities_for_an_option_says_what_to_set(
    kind: dict[str, Any], options: dict[str, Any], said: str, make: Make
) -> None:
    with FakeServer(**kind) as server, pytest.raises(RequestError, match=said):
        list(make(server.base_url, **options).choose([choice("Allowed?")]))


def test_a_server_that_refuses_an_echo_as_if_it_were_broken_says_what_to_set(make: Make) -> None:
    fault = Fault(status=500, body='{"error": {"code": 500, "message": "Only no echo is supported"}}')
    said = r"HTTP 500: Only no echo is supported .*set .*logprobs: top"
    with FakeServer(fault=lambda _number, _seen: fault) as server, pytest.raises(RequestError, match=said):
        list(make(server.base_url, attempts=2).choose([choice("Allowed?")]))


def test_counts_may_come_from_the_server(server: FakeServer, make: Make) -> None:
    backend = make(server.base_url, tokenizer="server")
    assert backend.count_tokens("one two  three") == 3
    assert backend.truncate("one two  three four", 2) == "one two"
    assert server.seen[-1].path == "/tokenize"
    assert server.seen[-1].body["add_special_tokens"] is False


def test_a_server_that_cannot_count_says_so(make: Make) -> None:
    with FakeServer() as server:
        backend = make(server.base_url.removesuffix("/v1") + "/elsewhere", tokenizer="server")
        with pytest.raises(BackendError, match="answers 404"):
            backend.count_tokens("one")


def test_missing_token_counts_end_the_run_unless_they_may_be_estimated(make: Make) -> None:
    with FakeServer(usage=False) as server:
        with pytest.raises(BackendError, match="reports no token counts"):
            list(make(server.base_url).generate(asks(1)))
        [(_, answer)] = make(server.base_url, usage="estimated").generate(asks(1))
    assert isinstance(answer, Completion)
    assert min(answer.prompt_tokens, answer.completion_tokens) > 0


def test_a_prompt_that_is_too_long_is_named_by_its_position_with_the_servers_words(make: Make) -> None:
    requests = [ask("short?"), ask("a rather long question, is it not?"), ask("short!")]
    with (
        FakeServer(context_tokens=11) as server,
        pytest.raises(RequestError, match="maximum context length is 11") as raised,
    ):
        list(make(server.base_url).generate(requests))
    assert raised.value.position == 1


def test_what_finished_before_a_refused_prompt_comes_out_first(make: Make) -> None:
    requests = [*asks(5), ask("a question of very many words for so small a context")]
    with FakeServer(context_tokens=12) as server:
        running = make(server.base_url, concurrency=1).generate(requests)
        assert [next(running)[0] for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(RequestError):
            next(running)


def test_a_wrong_name_of_a_model_stands_in_the_servers_words_however_long_it_is(server: FakeServer, make: Make) -> None:
    name = "an-organisation/a-model-with-a-long-name-70B-Instruct"
    with pytest.raises(BackendError, match=f"The model `{name}` does not exist"):
        list(make(server.base_url, model=name).generate(asks(1)))


def test_a_wrong_name_of_a_model_is_answered_with_the_right_one(server: FakeServer, make: Make) -> None:
    with pytest.raises(BackendError, match='serves no model "fake-modl": did you mean "fake-model"'):
        list(make(server.base_url, model="fake-modl").generate(asks(3)))


def test_text_without_a_utf8_form_is_refused_by_its_position(server: FakeServer, make: Make) -> None:
    with pytest.raises(RequestError, match="half a surrogate pair") as raised:
        list(make(server.base_url).generate([ask("fine"), ask("\ud800")]))
    assert raised.value.position == 1


def test_a_prompt_that_no_model_can_continue_is_refused(server: FakeServer, make: Make) -> None:
    empty = GenerateRequest(prompt=prompt("x").__class__(messages=(), shared=0), max_tokens=1, stop=())
    with pytest.raises(RequestError, match="the last message"):
        list(make(server.base_url).generate([empty]))


def test_a_role_is_loaded_with_its_attempts_and_nothing_around_it(server: FakeServer) -> None:
    role = Role(
        backend="openai_http", model="fake-model", sha256=None, attempts=2, options={"base_url": server.base_url}
    )
    backend = load_backend(role, threads=1)
    assert isinstance(backend, OpenAIHttpBackend)
    assert backend.identity == identity_of(role)
    assert backend._limits.attempts == 2
    backend.close()


def test_who_it_is_can_be_asked_without_its_packages() -> None:
    code = (
        "import sys; sys.modules['aiohttp'] = sys.modules['aiolimiter'] = None;"
        "from mragaudit.registry import locate;"
        "print(locate('llm', 'openai_http').identify(model='m', base_url='http://127.0.0.1/v1').model)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "m\n"


def test_hostile_characters_travel_both_ways_unchanged(make: Make) -> None:
    hostile = 'a\0b\u2028c "quoted" \\ 漢字 مرحبا 🦙'
    with FakeServer(rule=lambda text: text.rpartition("\n")[2]) as server:
        assert texts(make(server.base_url).generate([ask(hostile, max_tokens=99, stop=())])) == {0: hostile}


def test_further_fields_are_sent(server: FakeServer, make: Make) -> None:
    list(make(server.base_url, extra_body={"seed": 7}).generate(asks(1)))
    assert server.seen[-1].body["seed"] == 7


def test_a_packaged_models_hash_left_in_a_role_is_found_before_the_first_job() -> None:
    options = {"base_url": "http://127.0.0.1:8000/v1"}
    roles = {"judge": {"backend": "openai_http", "model": "m", "options": options}}
    with pytest.raises(ConfigError, match=r'"roles.judge.options": .*set the role\'s sha256: null'):
        require_options(load_settings({"roles": roles}))
    options["concurency"] = "3"
    with pytest.raises(ConfigError, match='"concurency" is no option of it; did you mean "concurrency"'):
        require_options(load_settings({"roles": roles}))


def test_the_example_config_names_an_endpoint_for_every_language_role() -> None:
    settings = read_settings([ROOT / "config.yaml", ROOT / "resources/configs/endpoint.yaml"])
    require_options(settings)
    found = {name: identity_of(getattr(settings.roles, name)) for name in LANGUAGE_ROLES}
    assert {one.backend for one in found.values()} == {"openai_http"}
    assert found["judge"].rendering == "chat+top"


def test_every_option_of_the_backend_stands_in_its_page() -> None:
    page = (ROOT / "docs/endpoints.md").read_text(encoding="utf-8")
    role = {"model", "sha256", "rendering", "context_tokens", "threads", "attempts"}
    options = set(inspect.signature(OpenAIHttpBackend).parameters) - role
    assert [name for name in sorted(options) if f"`{name}`" not in page] == []
