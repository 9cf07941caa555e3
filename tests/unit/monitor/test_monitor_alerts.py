"""Alerts reach a webhook and a stream, or are counted; what is slow or away there never delays a query."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mragaudit.errors import ConfigError
from mragaudit.monitor import ExfiltrationMonitor, LogSink, MonitorSettings
from mragaudit.monitor.alerts import QueuedSink, sinks_from
from mragaudit.monitor.alerts.queued import LONGEST_ASKED_PAUSE_SECONDS, UndeliveredError
from mragaudit.monitor.alerts.stream import AlertReader, StreamDelivery, stream_key
from mragaudit.monitor.alerts.webhook import WebhookDelivery, retry_after_seconds
from mragaudit.monitor.connection import connect
from mragaudit.monitor.settings import Store, Webhook
from mragaudit.records.monitoring import Alert

pytestmark = pytest.mark.monitor
KEY = "a key of twenty byte"
ROOT = Path(__file__).resolve().parents[3]
ENVIRON = {"MRAGAUDIT_WEBHOOK_SECRET": KEY}
Answer = Callable[[BaseHTTPRequestHandler, threading.Event], None]
"""Answers a request; the event is set when the test is over."""


def alert(number: int = 1, **changes: Any) -> Alert:
    fields: dict[str, Any] = {
        "alert_id": f"alert-{number}",
        "kind": "throttle",
        "time": 1_700_000_000.0,
        "user": "Ann Example",
        "user_hash": "aGFzaCBvZiBhIHVzZXI",
        "tenant": "default",
        "collection": "kb",
        "query_id": f"q{number}",
        "action": "throttle",
        "composite": 0.7,
        "throttle_at": 0.7,
        "signals": (),
        "reasons": ("volume: 51 queries in 1 h, at most 50",),
    }
    return Alert(**(fields | changes))


def status(code: int, **headers: str) -> Answer:
    """Answer with a status and headers."""

    def answer(request: BaseHTTPRequestHandler, _: threading.Event) -> None:
        request.send_response(code)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def hang(_: BaseHTTPRequestHandler, ended: threading.Event) -> None:
    ended.wait(20)


def drip(request: BaseHTTPRequestHandler, ended: threading.Event) -> None:
    """Send one byte of an endless header at a time, each within any timeout of a single read."""
    request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not ended.wait(0.02):
        request.wfile.write(b"x")


class Receiver:
    """An HTTP server on loopback that gives scripted answers, the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[tuple[float, dict[str, str], bytes]] = []
        self.ended = threading.Event()
        script = list(answers)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((time.monotonic(), dict(self.headers), body))
                (script.pop(0) if len(script) > 1 else script[0])(self, receiver.ended)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients leave on purpose
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook/path-token"

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Callable[..., Receiver]]:
    made: list[Receiver] = []

    def make(*answers: Answer) -> Receiver:
        made.append(Receiver(*answers))
        return made[-1]

    yield make
    for one in made:
        one.close()


def webhook(url: str, *, timeout: float = 5.0, plain: bool = False) -> WebhookDelivery:
    settings = Webhook(url=url, timeout_seconds=timeout)
    return WebhookDelivery(settings, plain_user_ids=plain, environ=ENVIRON)


def sink_for(delivery: Any, *, length: int = 100, attempts: int = 3, close_seconds: float = 10.0) -> QueuedSink:
    """Return a queue whose pauses are short."""
    return QueuedSink(delivery, length=length, attempts=attempts, close_seconds=close_seconds, first_pause_seconds=0.01)


def outcome(sink: QueuedSink) -> tuple[int, int, int]:
    return sink.counts.sent, sink.counts.failed, sink.counts.dropped


def test_an_alert_is_posted_as_json_with_the_hash_in_place_of_the_user(receiver: Callable[..., Receiver]) -> None:
    one = receiver(status(204))
    sink = sink_for(webhook(one.url))
    sink.send(alert())
    sink.close()
    ((_, headers, body),) = one.requests
    found = json.loads(body)
    assert (found["record"], found["user"], found["user_hash"]) == ("alert/1", alert().user_hash, alert().user_hash)
    assert b"Ann" not in body
    assert (headers["Content-Type"], headers["Idempotency-Key"]) == ("application/json", "alert-1")
    assert outcome(sink) == (1, 0, 0)


def test_a_receiver_on_this_machine_is_reached_past_any_proxy(
    receiver: Callable[..., Receiver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    one = receiver(status(200))
    sink = sink_for(webhook(one.url))
    sink.send(alert())
    sink.close()
    assert outcome(sink) == (1, 0, 0)


def test_plain_user_ids_are_sent_where_configured(receiver: Callable[..., Receiver]) -> None:
    one = receiver(status(200))
    sink = sink_for(webhook(one.url, plain=True))
    sink.send(alert())
    sink.close()
    assert json.loads(one.requests[0][2])["user"] == "Ann Example"


def test_the_signature_covers_timestamp_and_body(receiver: Callable[..., Receiver]) -> None:
    one = receiver(status(200))
    sink = sink_for(webhook(one.url))
    before = int(time.time())
    sink.send(alert())
    sink.close()
    ((_, headers, body),) = one.requests
    timestamp = headers["X-Mragaudit-Timestamp"]
    wanted = hmac.new(KEY.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert headers["X-Mragaudit-Signature"] == f"v1={wanted}"
    assert before <= int(timestamp) <= time.time()


def test_the_documented_check_takes_what_is_sent_and_nothing_else(receiver: Callable[..., Receiver]) -> None:
    text = (ROOT / "docs/monitor/operations.md").read_text(encoding="utf-8")
    block = text.partition("```python\n")[2].partition("```")[0]
    documented: dict[str, Any] = {}
    exec(block, documented)  # noqa: S102 - it is our own page
    one = receiver(status(200))
    sink = sink_for(webhook(one.url))
    sink.send(alert())
    sink.close()
    ((_, headers, body),) = one.requests
    old = headers | {"X-Mragaudit-Timestamp": "1700000000"}
    check = documented["is_genuine"]
    assert check(headers, body, KEY.encode())
    assert not check(headers, body + b" ", KEY.encode())
    assert not check(headers, body, b"another key of 20 by")
    assert not check(old, body, KEY.encode())


def test_the_documented_alert_is_one() -> None:
    text = (ROOT / "docs/monitor/operations.md").read_text(encoding="utf-8")
    shown = msgspec.json.decode(text.partition("```json\n")[2].partition("```")[0], type=Alert)
    assert [one.signal for one in shown.signals if one.alerting] == ["volume"]


def test_a_server_error_is_tried_again_with_the_same_key(receiver: Callable[..., Receiver]) -> None:
    one = receiver(status(500), status(200))
    sink = sink_for(webhook(one.url))
    sink.send(alert())
    sink.close()
    assert [headers["Idempotency-Key"] for _, headers, _ in one.requests] == ["alert-1", "alert-1"]
    assert outcome(sink) == (1, 0, 0)


def test_retry_after_is_waited_for(receiver: Callable[..., Receiver]) -> None:
    one = receiver(status(429, Retry_After="1"), status(200))
    sink = sink_for(webhook(one.url))
    sink.send(alert())
    sink.close()
    first, second = (moment for moment, _, _ in one.requests)
    assert second - first >= 1.0
    assert outcome(sink) == (1, 0, 0)


def test_all_attempts_used_up_is_a_counted_failure_and_the_next_alert_still_goes_out(
    receiver: Callable[..., Receiver], caplog: pytest.LogCaptureFixture
) -> None:
    one = receiver(status(503), status(503), status(503), status(200))
    sink = sink_for(webhook(one.url))
    sink.send(alert(1))
    sink.send(alert(2))
    sink.close()
    assert [headers["Idempotency-Key"] for _, headers, _ in one.requests] == ["alert-1"] * 3 + ["alert-2"]
    assert outcome(sink) == (1, 1, 0)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == [
        "webhook 127.0.0.1: alert alert-1 was not sent: the answer was 503"
    ]


@pytest.mark.parametrize("code", [400, 401, 404, 410, 501])
def test_a_refusal_for_good_is_not_tried_again(receiver: Callable[..., Receiver], code: int) -> None:
    one = receiver(status(code, Retry_After="100"))
    sink = sink_for(webhook(one.url))
    sink.send(alert())
    sink.close()
    assert (len(one.requests), outcome(sink)) == (1, (0, 1, 0))


def test_a_redirect_is_not_followed(receiver: Callable[..., Receiver], caplog: pytest.LogCaptureFixture) -> None:
    other = receiver(status(200))
    one = receiver(status(307, Location=other.url))
    sink = sink_for(webhook(one.url))
    sink.send(alert())
    sink.close()
    assert (len(one.requests), len(other.requests), outcome(sink)) == (1, 0, (0, 1, 0))
    assert "a redirect, which is not followed" in caplog.text


def test_a_receiver_that_is_not_there_is_a_counted_failure_that_names_no_path(caplog: pytest.LogCaptureFixture) -> None:
    sink = sink_for(webhook("http://127.0.0.1:1/path-token"))
    sink.send(alert())
    sink.close()
    assert outcome(sink) == (0, 1, 0)
    assert "ConnectError" in caplog.text
    assert not any(hidden in caplog.text for hidden in ("path-token", KEY, "Ann"))


@pytest.mark.parametrize("way", [hang, drip])
def test_an_attempt_ends_at_its_time_however_the_receiver_holds_on(
    receiver: Callable[..., Receiver], way: Answer
) -> None:
    one = receiver(way)
    sink = sink_for(webhook(one.url, timeout=0.2), attempts=2)
    started = time.monotonic()
    sink.send(alert())
    sink.close()
    assert 0.4 <= time.monotonic() - started < 5
    assert (len(one.requests), outcome(sink)) == (2, (0, 1, 0))


def test_a_webhook_that_hangs_delays_no_query(receiver: Callable[..., Receiver]) -> None:
    one = receiver(hang)
    sink = sink_for(webhook(one.url, timeout=20), attempts=1, close_seconds=0.1)
    settings = MonitorSettings.model_validate(
        {"store": {"url": "memory://hanging-webhook"}, "volume": {"max_queries": 1}, "alerts": {"repeat_seconds": 1}}
    )
    with ExfiltrationMonitor(settings, sinks=[sink]) as monitor:
        started = time.monotonic()
        for number in range(20):
            decision = monitor.record(user=f"u{number // 2}", query_id=f"q{number}", collection="kb", documents=[])
            assert decision.alert_sent == (number % 2 == 0 or decision.throttled)
        assert time.monotonic() - started < 5
        assert sink.waiting >= 8
    assert time.monotonic() - started < 10
    assert sink.counts.dropped >= 8


def test_a_full_queue_drops_counts_and_says_so_once(
    receiver: Callable[..., Receiver], caplog: pytest.LogCaptureFixture
) -> None:
    one = receiver(hang)
    sink = sink_for(webhook(one.url, timeout=20), length=5, attempts=1, close_seconds=0.05)
    sink.send(alert(0))
    while not one.requests:
        time.sleep(0.005)
    for number in range(1, 16):
        sink.send(alert(number))
    assert (sink.waiting, sink.counts.dropped) == (5, 10)
    sink.close()
    assert sink.counts.dropped == 15
    assert caplog.text.count("alerts dropped") == 1


def test_close_sends_what_waits() -> None:
    taken: list[str] = []
    sink = sink_for(Slow(taken))
    for number in range(20):
        sink.send(alert(number))
    sink.close()
    assert taken == ["open", *(f"alert-{number}" for number in range(20)), "close"]
    assert outcome(sink) == (20, 0, 0)


def test_after_close_an_alert_is_dropped_and_counted() -> None:
    sink = sink_for(Slow([]))
    sink.close()
    sink.send(alert())
    sink.close()
    assert outcome(sink) == (0, 0, 1)


def test_close_cuts_the_pause_before_a_further_attempt_short() -> None:
    sink = sink_for(Refusing(UndeliveredError("later", again=True, after_seconds=100)), close_seconds=0.2)
    sink.send(alert())
    started = time.monotonic()
    sink.close()
    assert time.monotonic() - started < 5


def test_an_unforeseen_fault_is_counted_and_the_queue_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    sink = sink_for(Refusing(RuntimeError("boom")))
    sink.send(alert(1))
    sink.send(alert(2))
    sink.close()
    assert outcome(sink) == (0, 2, 0)
    assert caplog.text.count("RuntimeError: boom") == 2


def test_a_receiver_cannot_ask_for_a_day_without_alerts() -> None:
    pauses: list[float] = []
    sink = sink_for(Refusing(UndeliveredError("later", again=True, after_seconds=86_400)), attempts=2)
    sink._retrying.sleep = pauses.append
    sink.send(alert())
    sink.close()
    assert pauses == [LONGEST_ASKED_PAUSE_SECONDS]


class Slow:
    """Takes a little time over each alert."""

    name = "slow"

    def __init__(self, taken: list[str]) -> None:
        self._taken = taken

    def open(self) -> None:
        self._taken.append("open")

    def deliver(self, alert: Alert) -> None:
        time.sleep(0.002)
        self._taken.append(alert.alert_id)

    def close(self) -> None:
        self._taken.append("close")


class Refusing(Slow):
    """Raises the same error at every attempt."""

    def __init__(self, error: Exception) -> None:
        super().__init__([])
        self._error = error

    def deliver(self, _: Alert) -> None:
        raise self._error


NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        ("0", 0.0),
        ("-4", 0.0),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, now=NOW) == seconds


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://alerts.example.org/x", r"http:// to alerts\.example\.org .* must be https://"),
        ("http://127.0.0.1.example.org/", "must be https://"),
        ("http://localhost.example.org/", "must be https://"),
        ("ftp://example.org/", "must begin with https://"),
        ("https://", "must begin with https:// and name a host"),
        ("example.org/hook", "must begin with https://"),
        ("https://example.org:x/", "not a URL"),
        ("https://[::1/", "not a URL"),
    ],
)
def test_a_url_to_which_alerts_must_not_go_is_refused(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"alerts\.webhook\.url: .*{message}"):
        webhook(url)


@pytest.mark.parametrize(
    "url", ["https://example.org/x", "http://127.0.0.1:9/x", "http://[::1]:9/x", "http://localhost/x"]
)
def test_https_and_this_machine_are_taken(url: str) -> None:
    assert webhook(url).name.startswith("webhook ")


@pytest.mark.parametrize(("value", "found"), [(None, "is not set"), ("", "is not set"), ("short", "holds 5 bytes")])
def test_a_webhook_without_a_usable_secret_is_refused(value: str | None, found: str) -> None:
    environ = {} if value is None else {"HOOK": value}
    settings = Webhook.model_validate({"url": "https://example.org", "secret_env": "HOOK"})
    with pytest.raises(ConfigError, match=rf"alerts\.webhook\.secret_env: the environment variable HOOK {found}; set"):
        WebhookDelivery(settings, plain_user_ids=False, environ=environ)


def stream_of(name: str, *, length: int = 100, plain: bool = False) -> QueuedSink:
    connection = connect(Store(url=f"memory://{name}"))
    return sink_for(StreamDelivery(connection, prefix="p", length=length, plain_user_ids=plain))


def reader_of(name: str) -> AlertReader:
    return AlertReader(connect(Store(url=f"memory://{name}")), prefix="p")


def test_a_stream_gives_back_the_alerts_in_order_with_hashed_users() -> None:
    sink = stream_of("order")
    for number in range(5):
        sink.send(alert(number))
    sink.close()
    found = [entry.alert for entry in reader_of("order").newest(3)]
    assert found == [alert(number, user=alert().user_hash) for number in (2, 3, 4)]


def test_a_reader_goes_on_behind_what_it_has_seen() -> None:
    reader = reader_of("follow")
    assert reader.newest(10) == []
    sink = stream_of("follow")
    sink.send(alert(1))
    sink.send(alert(2))
    sink.close()
    assert [entry.alert.alert_id for entry in reader.new() if entry.alert] == ["alert-1", "alert-2"]
    assert list(reader.new()) == []


def test_none_of_the_older_alerts_can_be_asked_for() -> None:
    sink = stream_of("none older")
    sink.send(alert(1))
    sink.close()
    reader = reader_of("none older")
    assert reader.newest(0) == []
    assert list(reader.new()) == []


def test_a_stream_is_bounded_and_expires() -> None:
    sink = stream_of("bounded", length=10)
    for number in range(50):
        sink.send(alert(number))
    sink.close()
    client = connect(Store(url="memory://bounded")).client
    assert client.xlen(stream_key("p")) <= 20
    assert 0 < client.ttl(stream_key("p")) <= 90 * 86_400


def test_an_entry_that_is_no_alert_is_named_and_hides_no_other() -> None:
    connect(Store(url="memory://odd")).client.xadd(stream_key("p"), {"alert": b'{"record":"alert/9"}'})
    sink = stream_of("odd")
    sink.send(alert(1))
    sink.close()
    assert [entry.alert is None for entry in reader_of("odd").newest(10)] == [True, False]


def test_a_stream_whose_store_is_away_is_a_counted_failure(caplog: pytest.LogCaptureFixture) -> None:
    connection = connect(Store(url="redis://127.0.0.1:1"))
    sink = sink_for(StreamDelivery(connection, prefix="p", length=10, plain_user_ids=False))
    sink.send(alert())
    sink.close()
    assert outcome(sink) == (0, 1, 0)
    assert "stream: alert alert-1 was not sent: ConnectionError" in caplog.text


def test_the_settings_name_the_sinks() -> None:
    everything = MonitorSettings.model_validate({"alerts": {"webhook": {"url": "https://example.org/x"}}})
    sinks = sinks_from(everything, environ=ENVIRON)
    assert [type(one) for one in sinks] == [LogSink, QueuedSink, QueuedSink]
    assert [one.name for one in sinks if isinstance(one, QueuedSink)] == ["webhook example.org", "stream"]
    nothing = MonitorSettings.model_validate({"alerts": {"log": False, "stream": False}})
    assert sinks_from(nothing, environ={}) == ()
