"""`mragaudit monitor`: what a person sees, and one clear line where something is wrong."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from typer.testing import CliRunner, Result

from mragaudit import cli
from mragaudit.errors import ConfigError, DataError, MissingPackageError, MragauditError, StoreError
from mragaudit.monitor import ExfiltrationMonitor, MonitorSettings, admin
from mragaudit.monitor.alerts import QueuedSink
from mragaudit.monitor.alerts.stream import StreamDelivery, stream_key
from mragaudit.monitor.cli import seconds_of, shown_url
from mragaudit.monitor.connection import connect
from mragaudit.monitor.settings import Store
from mragaudit.monitor.states import UserState
from mragaudit.monitor.views import printable, rough
from mragaudit.records.monitoring import Alert

pytestmark = pytest.mark.monitor
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MRAGAUDIT_MONITOR_URL", raising=False)
    monkeypatch.delenv("MRAGAUDIT_MONITOR_SETTINGS", raising=False)


@pytest.fixture
def url() -> str:
    return f"memory://cli-{next(_numbers)}"


@pytest.fixture
def monitor(url: str) -> Iterator[ExfiltrationMonitor]:
    with ExfiltrationMonitor(MonitorSettings(store=Store(url=url)), sinks=()) as one:
        yield one


def call(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(cli.app, ["monitor", *arguments], input=typed)


def said(*arguments: str, typed: str = "") -> str:
    """Return what a command printed; it must have ended well."""
    result = call(*arguments, typed=typed)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def refused(*arguments: str) -> MragauditError:
    result = call(*arguments)
    assert isinstance(result.exception, MragauditError), result.output
    return result.exception


def sweep(monitor: ExfiltrationMonitor, *, user: str = "ann", queries: int = 60, level: str = "public") -> None:
    monitor.set_size("kb", 100)
    for number in range(queries):
        monitor.record(user=user, query_id=f"{user}-{number}", collection="kb", documents=[(f"doc-{number}", level)])


def test_top_lists_users_by_risk_under_their_hashes(monitor: ExfiltrationMonitor, url: str) -> None:
    sweep(monitor)
    sweep(monitor, user="bea", queries=5)
    lines = said("top", "--once", "--url", url).splitlines()
    assert lines[0] == "tenant default: 2 of 2 users looked at, 2 remembered; limits of roles not applied"
    assert lines[1].split() == "user risk volume coverage sensitivity collection last query state".split()
    # 0.4 * 1 + 0.35 * 0.75 + 0.25 * 0 stays below the floor of an alerting signal, 0.7
    assert lines[2].split()[:6] == [monitor.user_hash("ann"), "0.70", "1.00!", "0.75", "0.00", "kb"]
    assert "throttled for" in lines[2]
    assert lines[3].split()[:5] == [monitor.user_hash("bea"), "0.10", "0.10", "-", "-"]
    assert lines[3].rstrip().endswith("passes")
    assert "ann" not in "".join(lines)


def test_top_prints_json_for_scripts(monitor: ExfiltrationMonitor, url: str) -> None:
    sweep(monitor)
    ranking = msgspec.json.decode(said("top", "--json", "--url", url), type=admin.Ranking)
    assert (ranking.remembered, ranking.users[0].throttled) == (1, True)


def test_explain_names_signals_documents_and_since_when(monitor: ExfiltrationMonitor, url: str) -> None:
    sweep(monitor, level="restricted")
    lines = said("explain", "ann", "--documents", "2", "--url", url).splitlines()
    text = "\n".join(lines)
    assert lines[0].startswith(f"user {monitor.user_hash('ann')}, 20")
    assert lines[1].startswith("throttled since 20")
    assert "  volume      ALERT  score 1.00  60, alerts above 50, window 1 h" in lines
    assert (
        "  coverage           score 0.75  60 of 100 (0.60), alerts above 0.80; 60 distinct, cap 5000, window 7 d"
        in lines
    )
    assert (
        "  sensitivity ALERT  score 1.00  60 of 60 (1.00), alerts above 0.30; 60 distinct, cap 500, window 1 d" in lines
    )
    assert "  documents, newest first: 2 of 60" in lines
    assert [line.split()[-2:] for line in lines[-2:]] == [["doc-59", "sensitive"], ["doc-58", "sensitive"]]
    assert "alert sensitivity: 20" in text


def test_explain_takes_a_hash_and_prints_json(monitor: ExfiltrationMonitor, url: str) -> None:
    sweep(monitor)
    hashed = monitor.user_hash("ann")
    state = msgspec.json.decode(said("explain", hashed, "--hash", "--json", "--url", url), type=UserState)
    assert (state.user_hash, state.throttled, len(state.collections[0].documents)) == (hashed, True, 20)


def test_explain_says_that_nothing_is_known_of_a_user(monitor: ExfiltrationMonitor, url: str) -> None:
    assert "check the id and --tenant" in said("explain", "typo", "--url", url)
    assert monitor.user_hash("typo") in said("explain", "typo", "--url", url)


def test_control_characters_of_an_attacker_do_not_reach_the_terminal(monitor: ExfiltrationMonitor, url: str) -> None:
    monitor.record(user="ann", query_id="q", collection="kb", documents=[("\x1b[2J\x07evil\u202e", "public")])
    text = said("explain", "ann", "--url", url)
    assert "\\x1b[2J\\x07evil\\u202e" in text
    assert not set(text) & {"\x1b", "\x07", "\u202e"}


def test_clear_asks_first_and_then_the_user_starts_anew(monitor: ExfiltrationMonitor, url: str) -> None:
    sweep(monitor)
    result = call(
        "clear",
        "ann",
        "--url",
        url,
    )
    assert result.exit_code == 1
    assert admin.explain(monitor, "ann").throttled
    text = said("clear", "ann", "--url", url, typed="y\n")
    assert f"cleared {monitor.user_hash('ann')}: " in text
    assert not admin.explain(monitor, "ann").throttled


def test_clear_can_forget_everything_without_asking(monitor: ExfiltrationMonitor, url: str) -> None:
    sweep(monitor)
    said("clear", "ann", "--yes", "--forget", "--url", url)
    assert not [key for key in monitor.store.client.keys() if b"{u." in key]  # noqa: SIM118 - no mapping


def test_allow_lets_a_user_pass_and_disallow_ends_it(monitor: ExfiltrationMonitor, url: str) -> None:
    sweep(monitor)
    hashed = monitor.user_hash("ann")
    text = said("allow", "ann", "--for", "7d", "--reason", "export for the auditors", "--url", url)
    assert text.startswith(f"allowed {hashed} until 20")
    assert "export for the auditors" in said("explain", "ann", "--url", url)
    assert "allowed for 6 d" in said("top", "--once", "--url", url)
    assert said("disallow", hashed, "--hash", "--url", url) == f"{hashed} is off the allow-list\n"
    assert said("disallow", "ann", "--url", url) == f"{hashed} was not on the allow-list\n"


def test_hash_prints_what_stands_for_a_user(monitor: ExfiltrationMonitor, url: str) -> None:
    assert said("hash", "ann", "--url", url).strip() == monitor.user_hash("ann")
    assert said("hash", "ann", "--tenant", "b", "--url", url).strip() == monitor.user_hash("ann", tenant="b")


def test_alerts_prints_the_newest_ones_a_line_each(monitor: ExfiltrationMonitor, url: str) -> None:
    _with_stream(monitor)
    sweep(monitor, level="restricted")
    sink = monitor.session.sinks[0]
    sink.close()
    lines = said("alerts", "--no-follow", "--last", "1", "--url", url).splitlines()
    assert len(lines) == 1
    # 0.4 * 1 + 0.35 * 0.51 / 0.8 + 0.25 * 1
    assert f"throttle    user {monitor.user_hash('ann')}  collection kb  throttle  composite 0.87: " in lines[0]
    assert "volume: 51 queries in 1 h, at most 50" in lines[0]
    decoded = [
        msgspec.json.decode(line, type=Alert)
        for line in said("alerts", "--no-follow", "--json", "--url", url).splitlines()
    ]
    assert [one.query_id for one in decoded] == ["ann-19", "ann-50"]


def _with_stream(monitor: ExfiltrationMonitor) -> None:
    delivery = StreamDelivery(connect(monitor.settings.store), prefix="mragaudit", length=100, plain_user_ids=False)
    monitor.session.sinks = (QueuedSink(delivery, length=100, attempts=1),)


def test_alerts_names_an_entry_that_it_cannot_read(url: str) -> None:
    connect(Store(url=url)).client.xadd(stream_key("mragaudit"), {"alert": "x"})
    result = call("alerts", "--no-follow", "--url", url)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "is no alert that this version can read" in result.stderr


def test_config_prints_the_defaults_and_the_schema() -> None:
    assert MonitorSettings.model_validate_json(json.dumps(yaml.safe_load(said("config")))) == MonitorSettings()
    assert json.loads(said("config", "--schema"))["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_settings_come_from_a_file(monitor: ExfiltrationMonitor, url: str, tmp_path: Path) -> None:
    path = tmp_path / "monitor.yaml"
    path.write_text(f"store: {{url: '{url}'}}\nvolume: {{max_queries: 100}}\n", encoding="utf-8")
    sweep(monitor)
    assert "60, alerts above 100" in said("explain", "ann", "--settings", str(path))


def test_a_faulty_settings_file_is_named_with_the_key(url: str, tmp_path: Path) -> None:
    path = tmp_path / "monitor.yaml"
    path.write_text("volum: {}\n", encoding="utf-8")
    error = refused("top", "--once", "--settings", str(path), "--url", url)
    assert str(error) == f'{path}: config key "volum" is unknown; did you mean "volume"?'


@pytest.mark.parametrize("command", [["top", "--once"], ["explain", "ann"], ["hash", "ann"], ["alerts", "--no-follow"]])
def test_a_store_that_nobody_named_is_one_clear_line(command: list[str]) -> None:
    assert isinstance(refused(*command), ConfigError)
    assert "name the store that the service uses with --url or --settings" in str(refused(*command))


def test_a_role_that_the_settings_lack_is_refused(url: str) -> None:
    assert str(refused("explain", "ann", "--role", "boss", "--url", url)) == (
        'roles: "boss" is not in the settings; known: none'
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--upstream", "127.0.0.1:8000"],
        ["--upstream", "http://127.0.0.1:1", "--user-header", "X-User"],
        ["--upstream", "http://127.0.0.1:1", "--trusted-proxy", "10.0.0.1"],
        ["--upstream", "http://127.0.0.1:1", "--user-header", "X-User", "--trusted-proxy", "10.0.0"],
        ["--upstream", "http://127.0.0.1:1", "--url", "http://127.0.0.1"],
    ],
)
def test_serve_refuses_options_that_would_not_work(arguments: list[str]) -> None:
    assert isinstance(refused("serve", *arguments), ConfigError)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1.5h", 5_400), ("7d", 604_800), ("30min", 1_800), ("2 h", 7_200)]
)
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1w", "1e9d", "infd", "7d "[:-1] + "x"])
def test_text_that_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="is no length of time"):
        seconds_of(text)


def test_a_store_is_shown_without_its_password() -> None:
    assert shown_url("rediss://ann:secret@redis.example.org:6380/2?x=y") == "rediss://redis.example.org:6380/2"
    assert shown_url("unix://:secret@/run/redis.sock?db=1") == "unix:///run/redis.sock"


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0 s"), (59.9, "59 s"), (60, "1 min"), (7_199, "1 h"), (200_000, "2 d")]
)
def test_lengths_of_time_are_shown_in_their_largest_unit(seconds: float, text: str) -> None:
    assert rough(seconds) == text


def test_long_ids_are_cut() -> None:
    assert printable("x" * 200, most=10) == "x" * 9 + "…"


def test_a_store_that_is_away_is_one_line_and_exit_code_1() -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MRAGAUDIT_MONITOR")}
    done = subprocess.run(
        [sys.executable, "-c", "from mragaudit.cli import main; main()", "monitor", "top", "--once"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=clean | {"MRAGAUDIT_MONITOR_URL": "redis://:hidden@127.0.0.1:1"},
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: the store redis://127.0.0.1:1 does not answer as it should: ConnectionError\n"


def test_a_cluster_that_is_away_is_named_without_its_password() -> None:
    error = refused("top", "--once", "--url", "redis+cluster://:hidden@127.0.0.1:1")
    assert isinstance(error, StoreError)
    assert str(error).startswith("the store redis+cluster://127.0.0.1:1 does not answer as it should: ")


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("redis", ["hash", "ann", "--url", "redis://127.0.0.1:1"]),
        ("redis", ["alerts", "--url", "redis://127.0.0.1:1"]),
        ("uvicorn", ["serve", "--upstream", "http://127.0.0.1:1"]),
        ("fakeredis", ["hash", "ann", "--url", "memory://x"]),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    package: str, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "mragaudit.monitor.front.proxy", raising=False)
    error = refused(*command)
    assert isinstance(error, MissingPackageError)
    assert str(error) == (f"the package {package} is not installed; install it with: pip install 'mragaudit[monitor]'")


def test_config_needs_no_optional_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    assert said("config").startswith("# ")


class Upstream(BaseHTTPRequestHandler):
    """A RAG service that reports what it retrieved."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"answer": "42"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-RAG-Retrieved", '{"documents": [{"id": "doc-1", "level": "public"}]}')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def upstream() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Upstream)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def ask(address: str, *, deadline_seconds: float = 30.0, **options: Any) -> Any:
    """Return an answer, asked for until the server is up."""
    deadline = time.monotonic() + deadline_seconds
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        try:
            with direct.open(urllib.request.Request(address, **options), timeout=5) as answer:  # noqa: S310 - loopback
                return answer.read(), dict(answer.headers)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_serve_stands_before_a_service_and_ends_with_a_signal(upstream: str) -> None:
    port, admin_port = free_port(), free_port()
    command = [sys.executable, "-c", "from mragaudit.cli import main; main()", "monitor", "serve"]
    options = ["--upstream", upstream, "--port", str(port), "--admin-port", str(admin_port), "--collection", "kb"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    try:
        headers = {"Authorization": "Bearer token-of-ann"}
        body, found = ask(f"http://127.0.0.1:{port}/v1/chat/completions", data=b"{}", headers=headers)
        metrics, _ = ask(f"http://127.0.0.1:{admin_port}/metrics")
        assert json.loads(body) == {"answer": "42"}
        assert "x-rag-retrieved" not in {name.lower() for name in found}
        assert b'decisions_total{action="pass"} 1.0' in metrics
    finally:
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    assert "what is counted is lost with this process" in log
    assert "Traceback" not in log
    assert "token-of-ann" not in log
