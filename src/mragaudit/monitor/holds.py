"""The few places that one user has for delayed requests; a flood of them is refused, not queued."""

from __future__ import annotations

from mragaudit.monitor.calls import Call, Script, microseconds
from mragaudit.monitor.keys import UserKeys, encode_query
from mragaudit.monitor.queries import check_id
from mragaudit.monitor.settings import MonitorSettings

HOLD = Script.read("hold")
RELEASE = Script.read("release")
MARGIN_SECONDS = 30.0
"""A place whose holder died is free again after the delay and this."""


def hold_call(settings: MonitorSettings, *, user_hash: str, request_id: str, time: float | None = None) -> Call:
    """Return the call that takes a place; its answer is 1, or 0 when all are taken."""
    check_id("request_id", request_id, settings)
    held = microseconds(settings.throttle.delay_seconds + MARGIN_SECONDS)
    now = "" if time is None else microseconds(time)
    key = UserKeys(settings.store.prefix, user_hash).key("held")
    return Call(HOLD, [key], [encode_query(request_id), held, settings.throttle.max_delayed, now])


def release_call(settings: MonitorSettings, *, user_hash: str, request_id: str) -> Call:
    """Return the call that gives a place back."""
    check_id("request_id", request_id, settings)
    key = UserKeys(settings.store.prefix, user_hash).key("held")
    return Call(RELEASE, [key], [encode_query(request_id)])
