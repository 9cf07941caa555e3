"""Where alerts go: the protocol, what a sink may tell of a user, and the log."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

import msgspec

from mragaudit.records.monitoring import Alert

logger = logging.getLogger("mragaudit.monitor.alerts")
failures = logging.getLogger(__name__)


class AlertSink(Protocol):
    """Takes alerts; returns at once, and does slow work elsewhere."""

    def send(self, alert: Alert) -> None:
        """Take one alert."""

    def close(self) -> None:
        """Send what is waiting, for a bounded time, and stop."""


def shown(alert: Alert, *, plain_user_ids: bool) -> Alert:
    """Return the alert as it leaves the process: the user's keyed hash in place of the id, unless configured."""
    if plain_user_ids or not alert.user:
        return alert
    return msgspec.structs.replace(alert, user=alert.user_hash)


class LogSink:
    """One warning a line: kind, user, action, composite, reasons."""

    def __init__(self, *, plain_user_ids: bool = False) -> None:
        self._plain = plain_user_ids

    def send(self, alert: Alert) -> None:
        """Log the alert; untrusted ids are written with their control characters escaped."""
        one = shown(alert, plain_user_ids=self._plain)
        composite = "not evaluated" if one.composite is None else f"{one.composite:.2f}"
        logger.warning(
            "%s: user %s, collection %s, %s, composite %s: %s",
            one.kind,
            _printable(one.user),
            _printable(one.collection),
            one.action,
            composite,
            "; ".join(one.reasons),
        )

    def close(self) -> None:
        """Nothing waits here."""


def _printable(text: str, most: int = 80) -> str:
    return repr(text[:most])[1:-1] if text else "-"


def send_to_all(sinks: Sequence[AlertSink], alert: Alert) -> None:
    """Hand an alert to every sink; one that fails is logged and keeps nothing from the others."""
    for sink in sinks:
        try:
            sink.send(alert)
        except Exception:  # whatever a sink does, the served query goes on
            failures.exception("an alert sink failed: %s", type(sink).__name__)
