"""Sinks that send alerts elsewhere: a webhook, a stream in the store; each on a thread of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mragaudit.monitor.alerts.queued import QueuedSink
from mragaudit.monitor.alerts.stream import STREAM_ATTEMPTS, StreamDelivery
from mragaudit.monitor.alerts.webhook import WebhookDelivery
from mragaudit.monitor.connection import connect
from mragaudit.monitor.settings import MonitorSettings
from mragaudit.monitor.sinks import AlertSink, LogSink

__all__ = ["QueuedSink", "sinks_from"]


def sinks_from(settings: MonitorSettings, *, environ: Mapping[str, str] = os.environ) -> tuple[AlertSink, ...]:
    """Return all sinks that the settings name: log, webhook, stream.

    No connection is opened before the first alert. Raises ConfigError for a webhook without https or without its
    secret in the environment, MissingPackageError without the extra `monitor`.
    """
    alerts = settings.alerts
    sinks: list[AlertSink] = [LogSink(plain_user_ids=alerts.plain_user_ids)] if alerts.log else []
    if alerts.webhook is not None:
        webhook = WebhookDelivery(alerts.webhook, plain_user_ids=alerts.plain_user_ids, environ=environ)
        sinks.append(QueuedSink(webhook, length=alerts.queue_length, attempts=alerts.webhook.attempts))
    if alerts.stream:
        stream = StreamDelivery(
            connect(settings.store),
            prefix=settings.store.prefix,
            length=alerts.stream_length,
            plain_user_ids=alerts.plain_user_ids,
        )
        sinks.append(QueuedSink(stream, length=alerts.queue_length, attempts=STREAM_ATTEMPTS))
    return tuple(sinks)
