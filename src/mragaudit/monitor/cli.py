"""`mragaudit monitor`: what a person types to run the monitor, look at users and mend a false alarm."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
import typer
from rich.console import Console
from rich.live import Live

from mragaudit.errors import ConfigError, DataError, StoreError
from mragaudit.monitor import admin
from mragaudit.monitor.alerts.stream import AlertReader, StreamEntry
from mragaudit.monitor.client import ExfiltrationMonitor
from mragaudit.monitor.connection import EXTRA, MEMORY, connect
from mragaudit.monitor.defaults import render_monitor_schema, render_monitor_settings
from mragaudit.monitor.queries import DEFAULT_TENANT
from mragaudit.monitor.reload import SettingsFile, read_monitor_settings
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.store import reason_of
from mragaudit.monitor.views import alert_line, moment, ranking_view, state_lines
from mragaudit.records.base import encode_record
from mragaudit.registry import import_package

app = typer.Typer(no_args_is_help=True, help="Watch a live service: who is emptying the index?")

PATIENCE_SECONDS = 5.0
"""A person waits longer for the store than a served query may."""
REFRESH_SECONDS = 2.0
FOLLOW_SECONDS = 0.5
PLAIN_WIDTH = 160
UNITS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
LENGTH = re.compile(r"(\d+(?:\.\d+)?)(s|min|h|d)")

SettingsOption = Annotated[
    Path | None,
    typer.Option("--settings", envvar="MRAGAUDIT_MONITOR_SETTINGS", help="YAML file of the monitor's settings"),
]
UrlOption = Annotated[
    str | None,
    typer.Option("--url", envvar="MRAGAUDIT_MONITOR_URL", help="the store, in place of store.url in the settings"),
]
TenantOption = Annotated[str, typer.Option("--tenant", help="the tenant to which the user belongs")]
HashOption = Annotated[bool, typer.Option("--hash", help="USER is a keyed hash, as `top` and alerts show it")]
UserArgument = Annotated[str, typer.Argument(metavar="USER", help="user id as the host names it")]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.command()
def serve(
    *,
    upstream: Annotated[str, typer.Option("--upstream", help="the service, such as http://127.0.0.1:8000")],
    settings: SettingsOption = None,
    url: UrlOption = None,
    host: Annotated[str, typer.Option(help="address for clients")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="port for clients")] = 8080,
    admin_host: Annotated[str, typer.Option(help="address of /metrics and the admin end points")] = "127.0.0.1",
    admin_port: Annotated[int, typer.Option(min=0, max=65_535, help="their port; 0: none")] = 9464,
    collection: Annotated[str | None, typer.Option(help="collection of reports that name none")] = None,
    header: Annotated[str, typer.Option(help="header in which the service reports retrieved ids")] = "X-RAG-Retrieved",
    field: Annotated[str, typer.Option(help="field of its JSON answer that does the same")] = "rag_retrieved",
    user_header: Annotated[
        str | None, typer.Option(help="header in which a login proxy names the user; default: hash of the bearer token")
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None, typer.Option(help="address or network of that login proxy; may be given again")
    ] = None,
    timeout: Annotated[float, typer.Option(min=1.0, help="longest silence of the service, in seconds")] = 300.0,
) -> None:
    """Stand before a RAG service that cannot be changed, as a reverse proxy that records what it retrieved."""
    from mragaudit.monitor.front.identity import trusted_header  # noqa: PLC0415 - only this command needs the fronts
    from mragaudit.monitor.front.proxy import ProxyOptions, run_proxy  # noqa: PLC0415 - needs httpx and uvicorn

    if trusted_proxy and user_header is None:
        raise ConfigError("--trusted-proxy says who may set --user-header, which is missing")
    options = ProxyOptions(
        upstream=upstream, collection=collection, header=header, field=field, timeout_seconds=timeout
    )
    identify = None if user_header is None else trusted_header(user_header, proxies=trusted_proxy or ())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs whole URLs, the webhook's among them
    run_proxy(
        settings=_live_settings(settings, url),
        options=options,
        host=host,
        port=port,
        identify=identify,
        admin_host=admin_host,
        admin_port=admin_port or None,
    )


def _live_settings(path: Path | None, url: str | None) -> MonitorSettings | SettingsFile:
    """Return settings that follow their file while the service runs; the store that was named stays."""
    if path is None:
        return _with_url(MonitorSettings(), url)
    live = SettingsFile(path)
    live.settings = _with_url(live.settings, url)
    return live


@app.command()
def top(
    *,
    settings: SettingsOption = None,
    url: UrlOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    n: Annotated[int, typer.Option("-n", "--users", min=1, help="users to show")] = 20,
    scanned: Annotated[int, typer.Option("--scan", min=1, help="most recently active users to look at")] = 1_000,
    once: Annotated[
        bool, typer.Option("--once", help="print one table and end, as where there is no terminal")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the users of a tenant by risk, anew every two seconds; a look counts as no query."""
    with _monitor(settings, url) as monitor:
        first = admin.top(monitor, n, tenant=tenant, scanned=scanned)
        if as_json:
            _print_json(first)
        elif once or not Console().is_terminal:
            _console().print(ranking_view(first))
        else:
            _watch(monitor, first, n=n, scanned=scanned)


def _watch(monitor: ExfiltrationMonitor, ranking: admin.Ranking, *, n: int, scanned: int) -> None:
    """Show the ranking until the person ends it; a store that is away for a moment leaves the last table."""
    with Live(ranking_view(ranking), console=Console(), screen=True, auto_refresh=False) as live:
        try:
            while True:
                live.refresh()
                time.sleep(REFRESH_SECONDS)
                try:
                    ranking = admin.top(monitor, n, tenant=ranking.tenant, scanned=scanned)
                    live.update(ranking_view(ranking))
                except StoreError as error:
                    live.update(ranking_view(ranking, note=f"the store is away ({error}); this is older"))
        except KeyboardInterrupt:
            return


@app.command()
def explain(
    user: UserArgument,
    *,
    settings: SettingsOption = None,
    url: UrlOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    hashed: HashOption = False,
    role: Annotated[str | None, typer.Option("--role", help="apply the limits of this role")] = None,
    documents: Annotated[int, typer.Option("--documents", min=0, help="documents to name, a collection")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Say of one user which signal reads what, which documents were retrieved, and since when; counts as no query."""
    with _monitor(settings, url) as monitor:
        if role is not None and role not in monitor.settings.roles:
            known = ", ".join(sorted(monitor.settings.roles)) or "none"
            raise ConfigError(f'roles: "{role}" is not in the settings; known: {known}')
        state = admin.explain(monitor, user, tenant=tenant, hashed=hashed, role=role, documents=documents)
    if as_json:
        _print_json(state)
    else:
        typer.echo("\n".join(state_lines(state, documents=documents)))


@app.command()
def clear(
    user: UserArgument,
    *,
    settings: SettingsOption = None,
    url: UrlOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    hashed: HashOption = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="baseline, allow-list entry and own documents as well")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
) -> None:
    """Forget a user's windows, throttling and noted alerts, so that the user starts anew."""
    with _monitor(settings, url) as monitor:
        name = admin.hash_of(monitor, user, tenant=tenant, hashed=hashed)
        if not yes:
            typer.confirm(f"Forget what the windows hold of user {name}?", abort=True)
        gone = admin.clear(monitor, name, hashed=True, forget=forget)
    typer.echo(f"cleared {name}: {gone} keys deleted")


@app.command()
def allow(
    user: UserArgument,
    *,
    length: Annotated[str, typer.Option("--for", metavar="LENGTH", help="such as 90min, 12h or 7d")],
    reason: Annotated[str, typer.Option("--reason", help="kept with the entry and shown by explain")],
    settings: SettingsOption = None,
    url: UrlOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    hashed: HashOption = False,
) -> None:
    """Let a user pass whatever the signals say, until the time is over."""
    seconds = seconds_of(length)
    with _monitor(settings, url) as monitor:
        name = admin.hash_of(monitor, user, tenant=tenant, hashed=hashed)
        entry = admin.allow(monitor, name, hashed=True, seconds=seconds, reason=reason)
    typer.echo(f"allowed {name} until {moment(entry.until)}")


@app.command()
def disallow(
    user: UserArgument,
    *,
    settings: SettingsOption = None,
    url: UrlOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
    hashed: HashOption = False,
) -> None:
    """Take a user off the allow-list."""
    with _monitor(settings, url) as monitor:
        name = admin.hash_of(monitor, user, tenant=tenant, hashed=hashed)
        found = admin.disallow(monitor, name, hashed=True)
    typer.echo(f"{name} {'is off the allow-list' if found else 'was not on the allow-list'}")


@app.command()
def alerts(
    *,
    settings: SettingsOption = None,
    url: UrlOption = None,
    last: Annotated[int, typer.Option("--last", min=0, help="alerts from before to begin with")] = 20,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="wait for further ones")] = True,
    as_json: JsonOption = False,
) -> None:
    """Print the stream of alerts, a line each; needs `alerts.stream: true` where the monitor runs."""
    chosen = _settings(settings, url)
    with _store_errors(chosen):
        reader = AlertReader(connect(chosen.store), prefix=chosen.store.prefix)
        try:
            for entry in _entries(reader, last=last, follow=follow):
                _print_entry(entry, as_json=as_json)
        except KeyboardInterrupt:  # how a person ends it
            return


def _entries(reader: AlertReader, *, last: int, follow: bool) -> Iterator[StreamEntry]:
    """Yield the newest entries of the stream, then what is added to it."""
    yield from reader.newest(last)
    while follow:
        yield from reader.new()
        time.sleep(FOLLOW_SECONDS)


def _print_entry(entry: StreamEntry, *, as_json: bool) -> None:
    if entry.alert is None:
        typer.echo(f"entry {entry.entry_id} of the stream is no alert that this version can read", err=True)
    elif as_json:
        typer.echo(encode_record(entry.alert).decode())
    else:
        typer.echo(alert_line(entry.alert))
    sys.stdout.flush()


@app.command("hash")
def hash_command(
    user: UserArgument,
    *,
    settings: SettingsOption = None,
    url: UrlOption = None,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Print the keyed hash that stands for a user in keys, logs and alerts."""
    with _monitor(settings, url) as monitor:
        typer.echo(admin.hash_of(monitor, user, tenant=tenant, hashed=False))


@app.command()
def config(schema: Annotated[bool, typer.Option("--schema", help="print the JSON schema instead")] = False) -> None:
    """Print the default settings, every key with its description."""
    typer.echo(render_monitor_schema() if schema else render_monitor_settings(), nl=False)


def seconds_of(length: str) -> float:
    """Return the seconds of a length such as 90min, 12h or 7d; raises DataError for any other text."""
    match = LENGTH.fullmatch(length.replace(" ", ""))
    if match is None:
        raise DataError(f'"{length}" is no length of time; write a number and one of s, min, h, d, such as 7d')
    return float(match[1]) * UNITS[match[2]]


def _settings(path: Path | None, url: str | None) -> MonitorSettings:
    """Return the settings with the store that was named; raises ConfigError where none was."""
    settings = MonitorSettings() if path is None else read_monitor_settings(path)
    settings = _with_url(settings, url)
    if settings.store.url == MEMORY:
        raise ConfigError(
            "store.url is memory://, which lives inside the service's own process; name the store that the service "
            "uses with --url or --settings"
        )
    patient = max(settings.store.timeout_seconds, PATIENCE_SECONDS)
    return settings.model_copy(update={"store": settings.store.model_copy(update={"timeout_seconds": patient})})


def _with_url(settings: MonitorSettings, url: str | None) -> MonitorSettings:
    if url is None:
        return settings
    return settings.model_copy(update={"store": settings.store.model_copy(update={"url": url})})


@contextmanager
def _monitor(path: Path | None, url: str | None) -> Iterator[ExfiltrationMonitor]:
    settings = _settings(path, url)
    with _store_errors(settings), ExfiltrationMonitor(settings, sinks=()) as monitor:
        yield monitor


@contextmanager
def _store_errors(settings: MonitorSettings) -> Iterator[None]:
    """Name the store in every error of it; a client of a cluster asks the nodes already when it is made."""
    where = shown_url(settings.store.url)
    redis = import_package("redis", extra=EXTRA).exceptions
    try:
        yield
    except (StoreError, redis.RedisError, redis.RedisClusterException) as error:
        reason = str(error) if isinstance(error, StoreError) else reason_of(error)
        raise StoreError(f"the store {where} does not answer as it should: {reason}") from error


def shown_url(url: str) -> str:
    """Return a store's URL without user name, password and options; raises ConfigError where it is none."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"store.url: not a URL ({error})") from error
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _console() -> Console:
    """Return a console that cuts no line short when its output goes to a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=PLAIN_WIDTH)


def _print_json(record: msgspec.Struct) -> None:
    typer.echo(msgspec.json.encode(record).decode())
