"""Alerts by HTTP POST: the alert's JSON, signed so that the receiver knows who sent it and when.

Headers: `X-Mragaudit-Timestamp`, Unix seconds of this attempt; `X-Mragaudit-Signature`, `v1=` and the hexadecimal
HMAC-SHA-256 of timestamp, a full stop and the body, keyed by the shared secret; `Idempotency-Key`, the alert's id,
the same for every attempt.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from mragaudit import __version__
from mragaudit.errors import ConfigError
from mragaudit.monitor.alerts.queued import UndeliveredError
from mragaudit.monitor.connection import EXTRA
from mragaudit.monitor.settings import Webhook
from mragaudit.monitor.sinks import shown
from mragaudit.records.base import encode_record
from mragaudit.records.monitoring import Alert
from mragaudit.registry import import_package

TIMESTAMP_HEADER = "X-Mragaudit-Timestamp"
SIGNATURE_HEADER = "X-Mragaudit-Signature"
LEAST_SECRET_BYTES = 16
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""


def signature(secret: bytes, *, timestamp: str, body: bytes) -> str:
    """Return the value of the signature header."""
    return "v1=" + hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class WebhookDelivery:
    """Posts alerts to one URL; redirects are not followed, and no attempt takes longer than its time."""

    def __init__(
        self,
        settings: Webhook,
        *,
        plain_user_ids: bool,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Check URL and secret; raises ConfigError, or MissingPackageError without httpx."""
        self._httpx = import_package("httpx", extra=EXTRA)
        host = _checked_host(settings.url)
        self._through_proxies = not _is_loopback(host)
        self._url = settings.url
        self.name = f"webhook {host}"  # the path of such a URL is often a secret itself
        self._secret = _secret_of(settings.secret_env, environ)
        self._timeout_seconds = settings.timeout_seconds
        self._plain = plain_user_ids
        self._clock = clock
        self._loop: Any = None
        self._client: Any = None

    def open(self) -> None:
        """Make the event loop and the client of the calling thread."""
        self._loop = asyncio.Runner()
        self._client = self._httpx.AsyncClient(
            timeout=self._timeout_seconds, follow_redirects=False, trust_env=self._through_proxies
        )

    def deliver(self, alert: Alert) -> None:
        """Post the alert once; raises UndeliveredError unless the answer is 2xx."""
        body = encode_record(shown(alert, plain_user_ids=self._plain))
        self._loop.run(self._post(body, key=alert.alert_id))

    async def _post(self, body: bytes, *, key: str) -> None:
        """Post under one deadline: httpx bounds each read alone, so a receiver that drips could hold on for ever."""
        ask = self._client.stream("POST", self._url, content=body, headers=self._headers(body, key=key))
        try:
            async with asyncio.timeout(self._timeout_seconds), ask as response:
                pass  # the status is all we want; a body could be endless
        except TimeoutError:
            raise UndeliveredError(f"no answer in {self._timeout_seconds:g} s", again=True) from None
        except self._httpx.HTTPError as error:  # its text may hold the URL
            raise UndeliveredError(type(error).__name__, again=True) from None
        if not response.is_success:
            _refuse(response.status_code, after=response.headers.get("retry-after"), now=self._clock())

    def _headers(self, body: bytes, *, key: str) -> dict[str, str]:
        timestamp = str(int(self._clock()))
        return {
            "Content-Type": "application/json",
            "User-Agent": f"mragaudit/{__version__}",
            "Idempotency-Key": key,
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: signature(self._secret, timestamp=timestamp, body=body),
        }

    def close(self) -> None:
        """Close the connection."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.run(self._client.aclose())
            loop.close()


def retry_after_seconds(value: str | None, *, now: float) -> float | None:
    """Return what a Retry-After header asks for, as seconds or as an HTTP date; None when it says nothing usable."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        moment = _http_date(value)
        seconds = math.nan if moment is None else moment.timestamp() - now
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _http_date(value: str) -> datetime | None:
    try:
        return parsedate_to_datetime(value)
    except ValueError:
        return None


def _refuse(status: int, *, after: str | None, now: float) -> None:
    again = status in RETRIED
    hint = "; the URL answers by a redirect, which is not followed" if status // 100 == 3 else ""  # noqa: PLR2004
    pause = retry_after_seconds(after, now=now) if again else None
    raise UndeliveredError(f"the answer was {status}{hint}", again=again, after_seconds=pause)


def _checked_host(url: str) -> str:
    """Return the host of a URL to which alerts may be sent."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"alerts.webhook.url: not a URL ({error})") from error
    if parts.scheme not in {"https", "http"} or not host:
        raise ConfigError("alerts.webhook.url: it must begin with https:// and name a host")
    if parts.scheme == "http" and not _is_loopback(host):
        raise ConfigError(f"alerts.webhook.url: http:// to {host} would send alerts in the clear; it must be https://")
    return host


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _secret_of(variable: str, environ: Mapping[str, str]) -> bytes:
    value = environ.get(variable, "").encode()
    if len(value) < LEAST_SECRET_BYTES:
        found = f"holds {len(value)} bytes" if value else "is not set"
        raise ConfigError(
            f"alerts.webhook.secret_env: the environment variable {variable} {found}; set it to the secret by which "
            f"the receiver checks signatures, at least {LEAST_SECRET_BYTES} bytes"
        )
    return value
