"""Where an endpoint is and how it may be spoken to: its address, its key, and what may be said about either."""

from __future__ import annotations

import html
import math
import os
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from mragaudit.errors import ConfigError

# Upper case only, so that a key set here by mistake is no name and goes no further.
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_KEY = re.compile(r"[\x21-\x7e]+")
HIDDEN_KEY = "[key]"
SHORTEST_SECRET_CHARS = 12
"""A shorter key guards nothing, as the `EMPTY` of a server that asks for none; an answer may hold that word."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """A checked address, with what is needed to call it."""

    base_url: str
    """Without user, password, query, fragment and last slash; `/chat/completions` goes behind it."""
    ssl_context: ssl.SSLContext | None
    """None for plain http."""
    key: str | None = field(repr=False)

    @property
    def root_url(self) -> str:
        """The server's own address, where end points outside the OpenAI ones lie."""
        return self.base_url.removesuffix("/v1")

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request."""
        content = {"Content-Type": "application/json"}
        return {**content, "Authorization": f"Bearer {self.key}"} if self.key else content

    def redact(self, text: str) -> str:
        """Return a text that others wrote, without the key."""
        return re.sub(_spelled(self.key), HIDDEN_KEY, text) if self.key else text

    def redact_answer(self, content: bytes) -> bytes:
        """Return a reply that holds an answer, without a key that is long enough to be one."""
        if not self.key or len(self.key) < SHORTEST_SECRET_CHARS:
            return content
        return re.sub(_spelled(self.key).encode(), HIDDEN_KEY.encode(), content)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much may be asked; raises ConfigError for a limit of nothing."""

    concurrency: int
    """Calls under way at once."""
    attempts: int
    timeout_seconds: float
    """Of one attempt, from connecting to the last byte."""
    requests_per_minute: float | None
    tokens_per_minute: float | None

    def __post_init__(self) -> None:
        for name in LIMITS:
            require_positive(name, getattr(self, name))


LIMITS: tuple[str, ...] = tuple(one.name for one in fields(Limits))


def require_positive(name: str, value: float | None) -> None:
    """Raise ConfigError for an option that is 0 or less, or no finite number; None is no limit."""
    if value is not None and not 0 < value < math.inf:
        raise ConfigError(f"openai_http.{name} is {value:g}; it must be above 0")


def open_endpoint(base_url: str, *, api_key_env: str | None, ca_file: str | None) -> Endpoint:
    """Return an endpoint ready to be called; the key is read from the environment now.

    Raises ConfigError for an address that is no http address or holds a secret, a variable that is not set, a key
    over plain http to another machine, and a file of certificates that is not there.
    """
    address = checked_url(base_url)
    key = _read_key(api_key_env) if api_key_env is not None else None
    parts = urlsplit(address)
    if key and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ConfigError(
            f"openai_http.base_url: {address} would carry the key of {api_key_env} unencrypted to another machine; "
            "use https, or a tunnel that ends on 127.0.0.1"
        )
    secure = parts.scheme == "https"
    return Endpoint(base_url=address, ssl_context=_ssl_context(ca_file) if secure else None, key=key)


def checked_url(base_url: str) -> str:
    """Return the address without its last slash; raises ConfigError for one that may not be used or shown."""
    try:
        parts = urlsplit(base_url)
        faults = _faults(parts)
    except ValueError:
        faults = "is no address"
    if faults:
        raise ConfigError(
            f"openai_http.base_url {faults}; give it as http://127.0.0.1:8000/v1 or https://HOST/v1, and the name of "
            "the environment variable that holds a key as openai_http.api_key_env"
        )
    return base_url.rstrip("/")


def _faults(parts: SplitResult) -> str:
    """Say what is wrong with an address, without repeating it: it may hold a password."""
    if parts.username is not None or parts.password is not None:
        return "holds a user or a password"
    if parts.query or parts.fragment:
        return "has a query or a fragment"
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return "does not begin with http:// or https:// and a host"
    # Reading the port raises ValueError for one that is no number.
    return "has port 0" if parts.port == 0 else ""


def checked_variable(name: str) -> str:
    """Return the name of an environment variable; raises ConfigError, without repeating it, for what is none."""
    if not _VARIABLE.fullmatch(name):
        raise ConfigError(
            "openai_http.api_key_env is no name of an environment variable (capitals, digits and _); "
            "it names the variable that holds the key, never the key itself"
        )
    return name


def lacking_here(*, api_key_env: str | None, ca_file: str | None) -> Iterator[str]:
    """Yield what options name and this machine does not have: `open_endpoint` would refuse it."""
    if api_key_env is not None and not os.environ.get(api_key_env, "").strip():
        yield f"the environment variable {api_key_env} (api_key_env) is not set here, or empty"
    if ca_file is not None and not Path(ca_file).is_file():
        yield f'there is no file "{ca_file}" (ca_file) here'


def _read_key(variable: str) -> str:
    key = os.environ.get(checked_variable(variable), "").strip()
    if not key:
        raise ConfigError(f"openai_http.api_key_env: the environment variable {variable} is not set, or empty")
    if not _KEY.fullmatch(key):
        raise ConfigError(
            f"openai_http.api_key_env: what {variable} holds cannot be a key; a key is printable ASCII without spaces"
        )
    return key


@cache
def _spelled(key: str) -> str:
    """Return a pattern of the key as JSON, HTML and addresses may spell it, whose escapes are of its marks alone."""
    return "".join(character if character.isalnum() else _escapes(character) for character in key)


def _escapes(mark: str) -> str:
    code = ord(mark)
    spelled = rf"\\?{re.escape(mark)}|%{code:02x}|\\u{code:04x}|&#x0*{code:x};|&#0*{code};"
    return f"(?i:{spelled}|{re.escape(html.escape(mark))})"


def _ssl_context(ca_file: str | None) -> ssl.SSLContext:
    if ca_file is not None and not Path(ca_file).is_file():
        raise ConfigError(f'openai_http.ca_file: there is no file "{ca_file}"; give the PEM file of your authority')
    try:
        return ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as error:
        raise ConfigError(f"openai_http.ca_file: {ca_file} holds no PEM certificates ({error.reason})") from error


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its name or number alone; no name is looked up."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
