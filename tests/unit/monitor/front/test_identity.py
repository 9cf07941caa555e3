"""Who asks: which headers are believed, from whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mragaudit.errors import ConfigError
from mragaudit.monitor.front.guard import Guard
from mragaudit.monitor.front.identity import BearerIdentity, Identity, identity_of, trusted_header

PROXIES = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"]


def scope(peer: str | None, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"client": None if peer is None else (peer, 1), "headers": list(headers)}


@pytest.mark.parametrize("peer", ["10.9.8.7", "192.0.2.7", "2001:db8::1", "::ffff:10.9.8.7"])
def test_a_header_counts_from_a_configured_proxy(peer: str) -> None:
    identify = trusted_header("X-User", proxies=PROXIES)
    assert identify(scope(peer, (b"x-user", b"alice"))) == "alice"


@pytest.mark.parametrize("peer", ["192.0.2.8", "11.0.0.1", "2001:db9::1", "::1", "testclient", "", None])
def test_a_header_from_anywhere_else_is_nobodys(peer: str | None) -> None:
    identify = trusted_header("X-User", proxies=PROXIES)
    assert identify(scope(peer, (b"x-user", b"alice"), (b"x-forwarded-for", b"10.9.8.7"))) is None


def test_a_header_that_is_there_twice_or_empty_is_nobodys() -> None:
    identify = trusted_header("X-User", proxies=PROXIES)
    assert identify(scope("10.0.0.1", (b"x-user", b"alice"), (b"X-User", b"bob"))) is None
    assert identify(scope("10.0.0.1", (b"x-user", b""))) is None
    assert identify(scope("10.0.0.1")) is None


def test_a_header_without_proxies_or_with_a_wrong_network_is_one_clear_error() -> None:
    with pytest.raises(ConfigError, match="any client could"):
        trusted_header("X-User", proxies=[])
    with pytest.raises(ConfigError, match=r'trusted proxy "10\.0\.0\.1/8"'):
        trusted_header("X-User", proxies=["10.0.0.1/8"])


def test_nobody_is_none_or_an_empty_user() -> None:
    assert identity_of(None) is None
    assert identity_of("") is None
    assert identity_of(Identity(user="")) is None
    assert identity_of("alice") == Identity(user="alice", tenant="default", role=None)


@pytest.mark.anyio
async def test_a_bearer_user_is_the_same_for_the_same_token_and_never_the_token(
    make_guard: Callable[..., Guard],
) -> None:
    identify = BearerIdentity(make_guard().monitor)
    first = await identify(scope("1.2.3.4", (b"authorization", b"Bearer secret-token")))
    again = await identify(scope("4.3.2.1", (b"Authorization", b"bearer secret-token")))
    other = await identify(scope("1.2.3.4", (b"authorization", b"Bearer other-token")))
    assert first == again != other
    assert first is not None
    assert "secret" not in first


@pytest.mark.anyio
async def test_a_bearer_user_is_known_while_the_store_with_the_key_is_away(make_settings: Callable[..., Any]) -> None:
    from mragaudit.monitor import AsyncExfiltrationMonitor  # noqa: PLC0415

    away = make_settings(store={"url": "redis://127.0.0.1:1", "timeout_seconds": 0.2})
    identify = BearerIdentity(Guard(AsyncExfiltrationMonitor(away)).monitor)
    found = await identify(scope("1.2.3.4", (b"authorization", b"Bearer secret-token")))
    assert found is not None
    assert found.startswith("token-")
