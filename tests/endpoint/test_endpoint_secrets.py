"""The key goes to the server and nowhere else; the connection to it is a trusted one."""

from __future__ import annotations

import logging
import ssl
import subprocess
import traceback
from pathlib import Path

import pytest
from endpoint_requests import Make, ask, asks, texts
from fake_openai import FakeServer, Fault

from mragaudit.calls import Caller
from mragaudit.errors import BackendError
from mragaudit.journal import Journal
from mragaudit.protocols import Failure

pytestmark = pytest.mark.http

KEY = "sk-planted-7f3a9c51e2"


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_KEY", KEY)


def test_a_key_opens_the_server_and_none_is_sent_without_one(make: Make) -> None:
    with FakeServer(key=KEY) as server:
        assert len(texts(make(server.base_url, api_key_env="PLANTED_KEY").generate(asks(1)))) == 1
        with pytest.raises(BackendError, match="answers 401"):
            list(make(server.base_url).generate(asks(1)))
        assert "Authorization" not in server.seen[-1].headers


def test_a_server_that_repeats_the_key_in_its_refusal_does_not_get_it_into_the_error(make: Make) -> None:
    with FakeServer(key="another") as server, pytest.raises(BackendError) as raised:
        list(make(server.base_url, api_key_env="PLANTED_KEY").generate(asks(1)))
    assert 'Incorrect API key provided: [key]"; openai_http.api_key_env names' in str(raised.value)
    assert KEY not in "".join(traceback.format_exception(raised.value))


def test_a_key_shows_in_no_log_journal_or_reason(make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    repeats = Fault(status=500, body=f"Bearer {KEY} is tired")
    with FakeServer(key=KEY, fault=lambda number, _seen: repeats if number % 2 else None) as server:
        backend = make(server.base_url, api_key_env="PLANTED_KEY", attempts=1)
        journal = Journal(tmp_path / "journal.jsonl")
        caller = Caller(identity=backend.identity, load=lambda: backend, journal=journal, label="test", progress=False)
        answers = caller.generate(asks(8), trials=[str(number) for number in range(8)])
        caller.close()
    reasons = [answer.reason for answer in answers if isinstance(answer, Failure)]
    assert reasons == ["HTTP 500: Bearer [key] is tired (1 of 1 attempts)"] * 4
    assert KEY not in caplog.text
    assert KEY.encode() not in (tmp_path / "journal.jsonl").read_bytes()
    assert KEY not in repr(vars(backend))
    assert {seen.headers["Authorization"] for seen in server.seen} == {f"Bearer {KEY}"}


def test_an_answer_that_repeats_the_key_holds_it_nowhere(make: Make) -> None:
    said = f'{{"choices": [{{"text": "sent {KEY}", "finish_reason": "%s"}}], "usage": {{"prompt_tokens": 1}}}}'
    for reason in ("stop", KEY):
        with FakeServer(fault=lambda _number, _seen, body=said % reason: Fault(body=body)) as server:
            [(_, found)] = make(server.base_url, api_key_env="PLANTED_KEY", attempts=1).generate(asks(1))
        assert "[key]" in repr(found)
        assert KEY not in repr(found)


def test_words_that_quote_a_prompt_stay_out_of_error_and_log(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    record = "Record: Ada Example, 12 Harbour Street"
    quoting = Fault(status=400, body=f"cannot read {record}")
    with FakeServer(fault=lambda _number, _seen: quoting) as server, pytest.raises(BackendError) as raised:
        list(make(server.base_url).generate([ask(record)]))
    assert "quote the request and are left out" in str(raised.value)
    assert "Ada" not in str(raised.value) + caplog.text


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return certificate and key of an authority of our own, for 127.0.0.1."""
    folder = tmp_path_factory.mktemp("authority")
    files = (folder / "cert.pem", folder / "key.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return files


def test_a_server_that_nobody_vouches_for_gets_no_request(make: Make, certificate: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    with FakeServer(ssl_context=context) as server:
        with pytest.raises(BackendError, match=r"no trusted connection .*certificate verify failed.*ca_file"):
            list(make(server.base_url, api_key_env="PLANTED_KEY").generate(asks(2)))
        assert server.seen == []
        trusting = make(server.base_url, api_key_env="PLANTED_KEY", ca_file=str(certificate[0]))
        assert len(texts(trusting.generate(asks(2)))) == 2
        # A TLS connection ends with a word from both sides, so the server must still be there.
        trusting.close()
