"""Who asks: always the host application's word, never a header that any client can send."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from mragaudit.errors import ConfigError, StoreError
from mragaudit.monitor.queries import DEFAULT_TENANT

Scope = Mapping[str, Any]
BEARER_TENANT = "bearer"
UNSENT_SECRET_BYTES = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """A user, as the host application knows it."""

    user: str
    tenant: str = DEFAULT_TENANT
    role: str | None = None


Identified = Identity | str | None
Identify = Callable[[Scope], Identified | Awaitable[Identified]]


def identity_of(found: Identified) -> Identity | None:
    """Return what a host's function found as an identity; None for nobody: None or an empty user."""
    if isinstance(found, Identity):
        return found if found.user else None
    return Identity(user=found) if found else None


def header_values(scope: Scope, name: str) -> list[str]:
    """Return the values of a request header; `name` in any case."""
    wanted = name.lower().encode("latin-1")
    return [value.decode("latin-1") for key, value in scope.get("headers", ()) if key.lower() == wanted]


def trusted_header(name: str, *, proxies: Iterable[str]) -> Callable[[Scope], str | None]:
    """Return a function that reads the user from a header, if the connection comes from one of the proxies.

    `proxies` are addresses or networks (10.0.0.0/8). From anywhere else, or with the header absent or there twice,
    the user is nobody. The address is the connection's own, so the server in front of the app must not rewrite it
    from X-Forwarded-For (uvicorn: --no-proxy-headers). Raises ConfigError for something that is no network.
    """
    networks = [_network(one) for one in proxies]
    if not networks:
        raise ConfigError(f"header {name}: it needs the addresses of the proxies that set it; any client could")

    def identify(scope: Scope) -> str | None:
        values = header_values(scope, name)
        return values[0] if len(values) == 1 and values[0] and _is_within(scope, networks) else None

    return identify


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ConfigError(f'trusted proxy "{text}": {error}; write an address or a network like 10.0.0.0/8') from None


def _is_within(scope: Scope, networks: Iterable[Network]) -> bool:
    client = scope.get("client")
    try:
        address = ipaddress.ip_address(client[0]) if client else None
    except ValueError:  # a test client or a Unix socket
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address is not None and any(address in network for network in networks)


class Hashes(Protocol):
    """What can make keyed hashes: either monitor, as a guard holds it."""

    async def user_hash(self, user: str, *, tenant: str = DEFAULT_TENANT) -> str:
        """Return a keyed hash."""
        ...


class BearerIdentity:
    """The keyed hash of the request's bearer token, so that the token itself is stored and logged nowhere.

    It is as good as the service behind: whoever gets a new token is a new user. A token that is renewed every hour
    starts every window anew; name the user by a header of the login proxy there.
    """

    def __init__(self, hashes: Hashes) -> None:
        self._hashes = hashes
        self._own_secret = secrets.token_bytes(UNSENT_SECRET_BYTES)

    async def __call__(self, scope: Scope) -> str | None:
        """Return the user of a request, None without exactly one bearer token."""
        values = header_values(scope, "authorization")
        scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        try:
            return "token-" + await self._hashes.user_hash(token, tenant=BEARER_TENANT)
        except StoreError:  # its key lies in a store that is away, which then counts nothing either
            return "token-" + hmac.new(self._own_secret, token.encode(), hashlib.sha256).hexdigest()
