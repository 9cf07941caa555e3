"""Prometheus metrics, and the dashboard that reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mragaudit.monitor.alerts.queued import QueuedSink
from mragaudit.monitor.client import ExfiltrationMonitor
from mragaudit.monitor.front.guard import Guard, Retrieval
from mragaudit.monitor.front.identity import Identity
from mragaudit.monitor.front.metrics import render_metrics

REPOSITORY = Path(__file__).parents[4]
DASHBOARD = REPOSITORY / "resources" / "monitor" / "grafana.json"
MakeGuard = Callable[..., Guard]
Series = tuple[str, frozenset[tuple[str, str]]]
EVE = Identity(user="eve")


def samples_of(guard: Guard) -> dict[Series, float]:
    """Return all samples as Prometheus would read them."""
    families = text_string_to_metric_families(render_metrics(guard).decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def value(guard: Guard, name: str, **labels: str) -> float:
    return samples_of(guard)[f"mragaudit_monitor_{name}", frozenset(labels.items())]


def retrieval(number: int) -> Retrieval:
    return Retrieval(collection="kb", documents=(("d1", "public"),), query_id=f"q{number}")


def test_decisions_refusals_and_latency_are_counted(make_blocking_guard: MakeGuard) -> None:
    guard = make_blocking_guard(throttle={"max_delayed": 0})
    for number in range(8):
        decision = guard.record_blocking(EVE, retrieval(number))
        guard.hold_back_blocking(decision, identity=EVE, seconds=decision.delay_seconds)
    guard.record_blocking(EVE, retrieval(7))
    assert value(guard, "decisions_total", action="pass") == 6
    assert value(guard, "decisions_total", action="throttle") == 3
    assert value(guard, "refused_total", reason="places") == 2
    assert value(guard, "duplicates_total") == 1
    assert value(guard, "not_evaluated_total", signal="coverage") == 9
    assert value(guard, "not_evaluated_total", signal="volume") == 0
    assert value(guard, "record_seconds_count") == 9
    assert value(guard, "record_seconds_bucket", le="+Inf") == 9
    assert 0 < value(guard, "record_seconds_sum") < 9


def test_every_label_value_is_there_before_anything_happened(make_blocking_guard: MakeGuard) -> None:
    samples = samples_of(make_blocking_guard())
    assert set(samples.values()) == {0.0}
    decisions = {labels for name, labels in samples if name == "mragaudit_monitor_decisions_total"}
    assert decisions == {frozenset({("action", "pass")}), frozenset({("action", "throttle")})}


def test_no_metric_says_who_asked_or_what_was_retrieved(make_blocking_guard: MakeGuard) -> None:
    guard = make_blocking_guard()
    who = Identity(user="alice@example.com", tenant="acme-corp")
    guard.record_blocking(who, Retrieval(collection="payroll", documents=(("doc-4711", "restricted"),)))
    text = render_metrics(guard).decode()
    hashed = guard.blocking.user_hash(who.user, tenant=who.tenant)
    assert not [secret for secret in ("alice", "acme", "payroll", "4711", hashed) if secret in text]
    labels = {name for _, pairs in samples_of(guard) for name, _ in pairs}
    assert labels == {"action", "kind", "signal", "reason", "outcome", "le", "sink"}


class Lost:
    """A delivery of which nothing arrives."""

    name = "webhook"

    def open(self) -> None:
        """Nothing to open."""

    def deliver(self, alert: Any) -> None:
        raise RuntimeError(alert.kind)

    def close(self) -> None:
        """Nothing to close."""


def test_alerts_that_reached_nobody_are_counted(
    make_settings: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    sink = QueuedSink(Lost(), length=10, attempts=1)
    with ExfiltrationMonitor(make_settings(), sinks=[sink], secret=b"test") as monitor:
        guard = Guard(monitor)
        for number in range(7):
            guard.record_blocking(EVE, retrieval(number))
    assert value(guard, "alert_deliveries_total", sink="webhook", outcome="failed") == 1
    assert value(guard, "alert_deliveries_total", sink="stream", outcome="failed") == 0
    assert "was not sent" in caplog.text


# What a PromQL expression names. A tokenizer suffices: outside of braces, brackets, strings and label lists every
# identifier that is no function, aggregation or keyword is a metric.
TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
    |(?P<range>\[[^\]]*\])
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:ms|[smhdwy])?)
    |(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
    |(?P<operator>=~|!~|==|!=|>=|<=|[-+*/%^<>=(){},@])""",
    re.VERBOSE,
)
LABEL_LISTS = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
KEYWORDS = LABEL_LISTS | {"and", "or", "unless", "offset", "bool", "inf", "nan"}


@dataclass(frozen=True, slots=True)
class Selector:
    """A metric with the label values that it is asked for, and the labels that group it."""

    name: str
    matchers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Parsed:
    """What an expression names."""

    selectors: tuple[Selector, ...]
    labels: frozenset[str]


def tokens_of(expression: str) -> list[tuple[str, str]]:
    found, position = [], 0
    while position < len(expression):
        match = TOKEN.match(expression, position)
        if match is None:
            raise ValueError(f"no PromQL at {expression[position:]!r}")
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match.group()))
        position = match.end()
    return found


def parse(expression: str) -> Parsed:
    """Return what an expression names; raises ValueError for what this does not know."""
    tokens = [*tokens_of(expression), ("end", "")]
    selectors: list[Selector] = []
    labels: set[str] = set()
    position = 0
    while tokens[position][0] != "end":
        kind, text = tokens[position]
        following = tokens[position + 1][1]
        if kind == "name" and text.lower() in LABEL_LISTS and following == "(":
            inside = list(_until(")", tokens, position + 2))
            labels |= {word for sort, word in inside if sort == "name"}
            position += 2 + len(inside)
        elif kind == "name" and text.lower() not in KEYWORDS and following != "(":
            matchers, used = _matchers(tokens, position + 1)
            if not _is_aggregation(tokens, position):
                selectors.append(Selector(text, matchers))
            position += used
        elif text == "{":
            raise ValueError("a selector without a metric name")
        position += 1
    return Parsed(tuple(selectors), frozenset(labels))


def _is_aggregation(tokens: list[tuple[str, str]], position: int) -> bool:
    """Return whether a name is an aggregation whose label list stands before its argument: sum by (x) (…)."""
    return tokens[position + 1][1].lower() in {"by", "without"}


def _until(end: str, tokens: list[tuple[str, str]], position: int) -> Iterator[tuple[str, str]]:
    while tokens[position][1] != end:
        if tokens[position][0] == "end":
            raise ValueError(f"no {end}")
        yield tokens[position]
        position += 1


def _matchers(tokens: list[tuple[str, str]], position: int) -> tuple[tuple[tuple[str, str], ...], int]:
    if tokens[position][1] != "{":
        return (), 0
    inside = list(_until("}", tokens, position + 1))
    names = [word for kind, word in inside if kind == "name"]
    values = [word[1:-1] for kind, word in inside if kind == "string"]
    return tuple(zip(names, values, strict=True)), len(inside) + 2


def test_the_parser_of_expressions_tells_metrics_from_the_rest() -> None:
    parsed = parse(
        'histogram_quantile(0.99, sum by (le, job) (rate(a_bucket{kind=~"x|y", z!="sum"}[5m] offset 1h)))'
        " / on (job) group_left (team) max(b_total) or vector(0) > bool 1e3"
    )
    assert parsed.selectors == (Selector("a_bucket", (("kind", "x|y"), ("z", "sum"))), Selector("b_total", ()))
    assert parsed.labels == {"le", "job", "team"}
    with pytest.raises(ValueError, match="without a metric name"):
        parse('sum({__name__="a"})')


def expressions() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def test_every_metric_label_and_value_of_the_dashboard_is_exported(make_blocking_guard: MakeGuard) -> None:
    samples = samples_of(make_blocking_guard())
    values: dict[str, dict[str, set[str]]] = {}
    for name, labels in samples:
        of_metric = values.setdefault(name, {})
        for label, one in labels:
            of_metric.setdefault(label, set()).add(one)
    for expression in expressions():
        parsed = parse(expression)
        assert parsed.selectors, expression
        for selector in parsed.selectors:
            assert selector.name in values, expression
            for label, wanted in selector.matchers:
                assert set(wanted.split("|")) <= values[selector.name][label], expression
        known = {label for selector in parsed.selectors for label in values[selector.name]}
        assert parsed.labels <= known | {"instance"}, expression  # Prometheus itself adds the instance


def test_every_exported_metric_is_on_the_dashboard_and_in_the_docs(make_blocking_guard: MakeGuard) -> None:
    shown = {selector.name for expression in expressions() for selector in parse(expression).selectors}
    exported = {name for name, _ in samples_of(make_blocking_guard())}
    assert exported == shown
    docs = (REPOSITORY / "docs" / "monitor" / "fronts.md").read_text(encoding="utf-8")
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in exported}
    assert [name for name in sorted(families) if f"`{name}" not in docs] == []
