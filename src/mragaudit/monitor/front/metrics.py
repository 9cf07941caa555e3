"""Prometheus metrics of one process: what the monitor decided and what its fronts did. No label names a user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import get_args

from mragaudit.monitor.alerts import QueuedSink
from mragaudit.monitor.front.counts import BUCKETS_SECONDS, FrontCounts
from mragaudit.monitor.front.guard import Guard
from mragaudit.monitor.front.packages import needed
from mragaudit.records.monitoring import Action, AlertKind, SignalName

with needed("prometheus_client"):
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
    from prometheus_client.registry import Collector

PREFIX = "mragaudit_monitor"
PROBLEMS = ("store", "breaker", "input", "internal")
REFUSALS = ("places", "unidentified")
SINKS = ("stream", "webhook")
OUTCOMES = ("sent", "failed", "dropped")
PROXIED = (
    "recorded",
    "unreported",
    "unreadable",
    "unidentified",
    "failed",
    "unreachable",
    "timeout",
    "too_large",
    "left",
)


class MonitorCollector(Collector):
    """Reads the counters when Prometheus asks; every label value is there from the start, at 0."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield from self._of_the_monitor()
        yield from _of_the_front(self._guard.counts)
        yield from _of_the_sinks([one for one in self._guard.monitor.session.sinks if isinstance(one, QueuedSink)])

    def _of_the_monitor(self) -> Iterator[Metric]:
        counts, session = self._guard.monitor.counts, self._guard.monitor.session
        yield _counter("decisions", "Queries by decision.", "action", get_args(Action), counts.decisions)
        yield _counter("alerts", "Alerts handed to the sinks.", "kind", get_args(AlertKind), counts.alerts)
        yield _counter("problems", "Queries that could not be judged, by cause.", "kind", PROBLEMS, counts.problems)
        help_text = "Queries at which a signal had no score."
        yield _counter("not_evaluated", help_text, "signal", get_args(SignalName), counts.not_evaluated)
        yield CounterMetricFamily(f"{PREFIX}_duplicates", "Queries whose id was known.", value=counts.duplicates)
        help_text = "Queries that returned a document of an unknown sensitivity level."
        yield CounterMetricFamily(f"{PREFIX}_unknown_levels", help_text, value=counts.unknown_levels)
        help_text = "1 while the store is left alone after failures."
        yield GaugeMetricFamily(f"{PREFIX}_breaker_open", help_text, value=float(session.breakers.is_open))


def _of_the_front(counts: FrontCounts) -> Iterator[Metric]:
    yield _counter("refused", "Requests refused, by cause.", "reason", REFUSALS, counts.refused)
    yield CounterMetricFamily(f"{PREFIX}_delayed", "Requests held back.", value=counts.delayed)
    help_text = "Seconds for which requests were held back."
    yield CounterMetricFamily(f"{PREFIX}_delayed_seconds", help_text, value=counts.delayed_seconds)
    yield GaugeMetricFamily(f"{PREFIX}_waiting", "Requests held back right now.", value=counts.waiting)
    help_text = "Requests whose client left while they were held back."
    yield CounterMetricFamily(f"{PREFIX}_abandoned", help_text, value=counts.abandoned)
    yield CounterMetricFamily(f"{PREFIX}_truncated", "Answers that were cut.", value=counts.truncated)
    yield _counter("proxied", "Requests through the proxy, by outcome.", "outcome", PROXIED, counts.proxied)
    cumulative = list(accumulate(counts.latency.counts))
    bounds = [*(str(bound) for bound in BUCKETS_SECONDS), "+Inf"]
    yield HistogramMetricFamily(
        f"{PREFIX}_record_seconds",
        "Seconds from handing a query to the monitor to its decision.",
        buckets=list(zip(bounds, cumulative, strict=True)),
        sum_value=counts.latency.sum_seconds,
    )


def _of_the_sinks(sinks: Sequence[QueuedSink]) -> Iterator[Metric]:
    help_text = "Alerts by what became of them on the way out."
    deliveries = CounterMetricFamily(f"{PREFIX}_alert_deliveries", help_text, labels=["sink", "outcome"])
    waiting = GaugeMetricFamily(f"{PREFIX}_alerts_waiting", "Alerts not sent yet.", labels=["sink"])
    by_name = {one.name: one for one in sinks}
    for name in sorted({*SINKS, *by_name}):
        sink = by_name.get(name)
        for outcome in OUTCOMES:
            deliveries.add_metric([name, outcome], 0 if sink is None else getattr(sink.counts, outcome))
        waiting.add_metric([name], 0 if sink is None else sink.waiting)
    yield deliveries
    yield waiting


def _counter(
    name: str, help_text: str, label: str, values: Iterable[str], counts: dict[str, int]
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"{PREFIX}_{name}", help_text, labels=[label])
    for value in sorted({*values, *counts}):
        family.add_metric([value], counts.get(value, 0))
    return family


def render_metrics(guard: Guard) -> bytes:
    """Return the metrics as Prometheus reads them; their content type is `CONTENT_TYPE`."""
    registry = CollectorRegistry()
    registry.register(MonitorCollector(guard))
    return generate_latest(registry)


CONTENT_TYPE = CONTENT_TYPE_LATEST
