from __future__ import annotations

from pathlib import Path

import pytest

from mragaudit.errors import ConfigError
from mragaudit.llm.http_endpoint import checked_url, is_loopback, open_endpoint
from mragaudit.llm.openai_http import OpenAIHttpBackend

KEY = "sk-planted-0123456789"


def identity(**options: object) -> tuple[str, str]:
    found = OpenAIHttpBackend.identify(**{"model": "m", "base_url": "http://127.0.0.1:8000/v1/", **options})  # type: ignore[arg-type]
    return found.revision, found.rendering


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://user:planted@127.0.0.1/v1", "holds a user or a password"),
        ("http://planted@127.0.0.1/v1", "holds a user or a password"),
        ("https://host/v1?key=planted", "has a query or a fragment"),
        ("127.0.0.1:8000/v1", "does not begin with http://"),
        ("ftp://host/planted", "does not begin with http://"),
        ("", "does not begin with http://"),
        ("http://host:planted/v1", "is no address"),
        ("http://[planted/v1", "is no address"),
    ],
)
def test_an_address_that_may_not_be_called_is_refused_without_being_repeated(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        checked_url(url)
    assert "planted" not in str(raised.value)


def test_a_key_comes_from_the_environment_and_shows_in_no_representation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_KEY", f"{KEY}\n")
    endpoint = open_endpoint("https://host/v1", api_key_env="PLANTED_KEY", ca_file=None)
    assert endpoint.headers["Authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(endpoint)
    assert endpoint.redact(f"bad key {KEY}!") == "bad key [key]!"


@pytest.mark.parametrize(
    "spelled",
    [
        "ab/c+d==efgh-12",
        r"ab\/c+d==efgh-12",
        r"ab/c\u002Bd\u003d=efgh-12",
        "ab%2Fc%2bd%3D%3Defgh-12",
        "ab&#x2F;c&#43;d==efgh-12",
    ],
)
def test_a_key_is_found_however_json_html_or_an_address_spells_it(
    spelled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_KEY", "ab/c+d==efgh-12")
    endpoint = open_endpoint("https://host/v1", api_key_env="PLANTED_KEY", ca_file=None)
    assert endpoint.redact(f"<{spelled}>") == "<[key]>"
    assert endpoint.redact_answer(f"<{spelled}>".encode()) == b"<[key]>"


def test_a_word_of_answers_is_left_there_where_it_is_the_key_of_a_server_without_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PLANTED_KEY", "EMPTY")
    endpoint = open_endpoint("https://host/v1", api_key_env="PLANTED_KEY", ca_file=None)
    assert endpoint.redact_answer(b"the list is EMPTY") == b"the list is EMPTY"


def test_a_key_is_not_sent_unencrypted_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_KEY", KEY)
    with pytest.raises(ConfigError, match="unencrypted to another machine; use https"):
        open_endpoint("http://192.0.2.1:8000/v1", api_key_env="PLANTED_KEY", ca_file=None)
    for host in ("127.0.0.1", "localhost", "[::1]"):
        assert open_endpoint(f"http://{host}:8000/v1", api_key_env="PLANTED_KEY", ca_file=None).key == KEY
    assert open_endpoint("http://192.0.2.1:8000/v1", api_key_env=None, ca_file=None).key is None


@pytest.mark.parametrize(
    ("value", "said"), [("", "is not set, or empty"), ("two words", "cannot be a key"), ("é", "cannot be a key")]
)
def test_a_variable_that_holds_no_key_is_named_without_what_it_holds(
    value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_KEY", value)
    with pytest.raises(ConfigError, match=f"PLANTED_KEY.* {said}") as raised:
        open_endpoint("https://host/v1", api_key_env="PLANTED_KEY", ca_file=None)
    assert "two words" not in str(raised.value)


def test_a_key_in_place_of_its_variables_name_is_refused_without_being_repeated() -> None:
    with pytest.raises(ConfigError, match="never the key itself") as raised:
        identity(api_key_env=KEY)
    assert KEY not in str(raised.value)


def test_a_file_of_certificates_that_is_absent_or_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='there is no file "nowhere'):
        open_endpoint("https://host/v1", api_key_env=None, ca_file="nowhere.pem")
    (tmp_path / "text.pem").write_text("no certificate")
    with pytest.raises(ConfigError, match="holds no PEM certificates"):
        open_endpoint("https://host/v1", api_key_env=None, ca_file=str(tmp_path / "text.pem"))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_is_known_by_name_or_number(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["localhost.example.org", "10.0.0.1", "0.0.0.0", ""])  # noqa: S104 - it is not bound to
def test_everything_else_is_another_machine(host: str) -> None:
    assert not is_loopback(host)


def test_the_endpoint_stands_for_the_weights_unless_they_are_named() -> None:
    assert identity() == ("http://127.0.0.1:8000/v1", "completion+echo")
    assert identity(revision="Qwen2.5@a09a354", rendering="chat") == ("Qwen2.5@a09a354", "chat+top")


def test_whatever_changes_answers_stands_in_the_identity() -> None:
    seeds = {identity(extra_body={"seed": seed, "top_k": 1}) for seed in (1, 2)}
    assert len(seeds | {identity(), identity(logprobs="top")}) == 4
    assert identity(extra_body={"top_k": 1, "seed": 2}) in seeds
    assert identity(concurrency=3, api_key_env="PLANTED_KEY", top_logprobs=5) == identity()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sha256": "ab"}, "set the role's sha256: null"),
        ({"rendering": "chat", "logprobs": "echo"}, "the chat end point echoes nothing"),
        ({"extra_body": {"temperature": 1}}, '"temperature" is set by us'),
    ],
)
def test_options_that_cannot_be_right_are_refused_before_any_call(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        identity(**options)


@pytest.mark.parametrize("name", ["concurrency", "timeout_seconds", "requests_per_minute", "top_logprobs"])
@pytest.mark.parametrize("bound", [0, float("inf"), float("nan")])
def test_a_bound_of_nothing_is_refused_by_its_name_before_any_call(bound: float, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"openai_http\.{name} is {bound:g}; it must be above 0"):
        identity(**{name: bound})
