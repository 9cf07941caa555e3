"""Settings of the exfiltration monitor: a description and a default on every key.

`resources/monitor/monitor.yaml` and its JSON schema are generated from here.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from mragaudit.config.section import Name, Section
from mragaudit.records.monitoring import SignalName

LevelName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
Seconds = Annotated[float, Field(gt=0, le=10 * 365 * 86_400, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
DAY_SECONDS = 86_400.0
WEIGHT_TOLERANCE = 1e-9
MAX_RING = 64


class Volume(Section):
    """Queries of one user in a sliding window."""

    window_seconds: Seconds = Field(3_600.0, description="length of the window")
    max_queries: int = Field(50, ge=1, description="more queries than this alert")
    tracked_queries: int = Field(10_000, ge=100, description="most queries remembered a user; bounds memory")


class SketchedWindow(Section):
    """A window that a ring of sketches can cover, one a sub-window."""

    window_seconds: Seconds
    sub_window_seconds: Seconds

    @property
    def ring(self) -> int:
        """Number of sketches that cover the window, the running one included."""
        return math.ceil(self.window_seconds / self.sub_window_seconds) + 1

    @model_validator(mode="after")
    def _short_ring(self) -> Self:
        if self.ring > MAX_RING:
            raise ValueError(
                f"the window holds {self.ring} sub-windows; {MAX_RING} are the most: lengthen sub_window_seconds"
            )
        return self


class Coverage(SketchedWindow):
    """Share of a collection that one user has retrieved."""

    window_seconds: Seconds = Field(604_800.0, description="length of the window, from each document's last retrieval")
    max_share: Share = Field(0.8, description="a larger share of the collection alerts")
    max_documents: int | None = Field(
        5_000, ge=1, description="more distinct documents of one collection alert, whatever the share; null: no cap"
    )
    mode: Literal["exact", "hyperloglog"] = Field(
        "exact", description="exact: every document id; hyperloglog: sketches, for very large collections"
    )
    sub_window_seconds: Seconds = Field(DAY_SECONDS, description="what one sketch covers (hyperloglog)")
    tracked_documents: int = Field(
        100_000, ge=100, description="most document ids remembered a user and collection (exact); bounds memory"
    )
    size_max_age_seconds: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="oldest collection size that is used on a cluster"
    )


class Baseline(Section):
    """What is normal for one user, so that work on sensitive documents is no alarm by itself."""

    user: bool = Field(True, description="learn from the user's own preceding weeks")
    weeks: int = Field(4, ge=1, le=26, description="how far back; the current window is left out")
    margin: float = Field(0.1, ge=0, le=1, allow_inf_nan=False, description="added to a user's or role's baseline")
    ceiling: Share = Field(0.5, description="a user's own baseline with its margin counts at most this: no slow creep")
    min_documents: int = Field(200, ge=1, description="fewer returned documents make no baseline")
    min_days: int = Field(5, ge=1, description="fewer days make no baseline; days with an alert never count")


class Sensitivity(Section):
    """Share of the returned documents that are sensitive."""

    window_seconds: Seconds = Field(DAY_SECONDS, description="length of the window")
    max_share: Share = Field(0.3, description="a larger share alerts, unless the baseline is higher")
    max_documents: int | None = Field(
        500, ge=1, description="more distinct sensitive documents alert, whatever the share; null: no cap"
    )
    tracked_queries: int = Field(10_000, ge=100, description="most answers remembered a user; bounds memory")
    baseline: Baseline = Field(default_factory=Baseline, description="what is normal for a user")


class Composite(Section):
    """The one number that decides."""

    weights: dict[SignalName, float] = Field(
        {"volume": 0.4, "coverage": 0.35, "sensitivity": 0.25},
        description="weights of the mean, adding up to 1; a missing signal drops out and the rest is renormalised",
    )
    throttle_at: Share = Field(0.7, description="composite risk from which a query is throttled")
    floor: Share | None = Field(
        None, description="least composite while a signal alerts, so that none is diluted; null: throttle_at"
    )
    alert_at: Share | None = Field(None, description="composite risk from which an alert goes out without throttling")
    release_at: Share = Field(0.5, description="a throttled user stays so until the composite falls below this")
    hold_seconds: Seconds = Field(900.0, description="and at least this long after the last query above throttle_at")

    @field_validator("weights")
    @classmethod
    def _weights(cls, value: dict[SignalName, float]) -> dict[SignalName, float]:
        if set(value) != {"volume", "coverage", "sensitivity"}:
            raise ValueError("weights need exactly the keys volume, coverage and sensitivity")
        if not all(math.isfinite(one) and one >= 0 for one in value.values()):
            raise ValueError("every weight must be a number of at least 0")
        if abs(sum(value.values()) - 1) > WEIGHT_TOLERANCE:
            raise ValueError(f"weights add up to {sum(value.values()):g}; they must add up to 1")
        return value

    @property
    def signal_floor(self) -> float:
        """Least composite while a signal alerts."""
        return self.throttle_at if self.floor is None else self.floor

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.release_at > self.throttle_at:
            raise ValueError(f"release_at ({self.release_at:g}) lies above throttle_at ({self.throttle_at:g})")
        if self.alert_at is not None and self.alert_at > self.throttle_at:
            raise ValueError(f"alert_at ({self.alert_at:g}) lies above throttle_at ({self.throttle_at:g})")
        return self


class Throttle(Section):
    """What a throttled query meets."""

    response: Literal["delay", "truncate"] = Field("delay", description="hold the answer back, or cut the results")
    delay_seconds: float = Field(5.0, gt=0, le=600, allow_inf_nan=False, description="how long an answer is held back")
    max_results: int = Field(1, ge=0, description="documents left to a truncated query")
    max_delayed: int = Field(2, ge=0, description="requests of one user held back at a time; more are refused (429)")
    retry_after_seconds: int = Field(60, ge=1, description="when a refused client may come again")


class RoleLimits(Section):
    """What differs for users of one role; null: as for everyone."""

    max_queries: int | None = Field(None, ge=1, description="replaces volume.max_queries")
    max_share: Share | None = Field(None, description="replaces coverage.max_share")
    max_documents: int | None = Field(None, ge=1, description="replaces coverage.max_documents")
    sensitivity_baseline: Share | None = Field(None, description="share of sensitive documents that is normal here")
    max_sensitive_documents: int | None = Field(None, ge=1, description="replaces sensitivity.max_documents")


class Collective(SketchedWindow):
    """Coverage by all users of a tenant together, against one attacker behind many accounts; it only alerts."""

    enabled: bool = Field(True, description="watch it")
    window_seconds: Seconds = Field(DAY_SECONDS, description="length of the window")
    sub_window_seconds: Seconds = Field(14_400.0, description="what one sketch covers")
    max_share: Share = Field(0.8, description="a larger share of the collection, retrieved by anyone, alerts")
    tracked_users: int = Field(10_000, ge=1, description="most users a tenant kept for the live view")


class Store(Section):
    """Where the windows are kept."""

    url: str = Field(
        "memory://",
        description="redis://, rediss://, redis+cluster:// (any node), unix://, or memory:// (in this process, to try)",
    )
    prefix: Name = Field("mragaudit", description="beginning of every key")
    timeout_seconds: Seconds = Field(0.25, description="longest wait for the store; then on_failure decides")
    on_failure: Literal["open", "closed"] = Field(
        "open", description="store away: open serves and alerts, closed throttles and alerts"
    )
    breaker_failures: int = Field(3, ge=1, description="failures in a row after which the store is left alone")
    breaker_seconds: Seconds = Field(5.0, description="for this long")


class Limits(Section):
    """What one query may bring."""

    documents_per_query: int = Field(1_000, ge=1, le=2_000, description="more retrieved ids are refused")
    id_bytes: int = Field(16_384, ge=64, description="longest user, query, collection or document id")
    own_documents: int = Field(
        10_000, ge=100, description="most ids remembered of the documents a user added; more are counted only"
    )
    own_days: int = Field(90, ge=1, description="a user's own documents are forgotten after this long without a query")
    size_days: int = Field(30, ge=1, description="a collection's size is forgotten after this long without any use")


class Webhook(Section):
    """Alerts by HTTP POST, signed."""

    url: str = Field(description="where alerts are sent; https unless it is this machine")
    secret_env: str = Field("MRAGAUDIT_WEBHOOK_SECRET", description="environment variable with the signing secret")
    timeout_seconds: Seconds = Field(5.0, description="longest wait an attempt")
    attempts: int = Field(5, ge=1, description="attempts an alert")


class Alerts(Section):
    """Who is told."""

    repeat_seconds: Seconds = Field(
        DAY_SECONDS, description="the same alert of a user comes again after its window, at the latest after this long"
    )
    log: bool = Field(True, description="to the log `mragaudit.monitor.alerts`")
    webhook: Webhook | None = Field(None, description="to an HTTP end point; null: none")
    stream: bool = Field(True, description="to a stream in the store, read by `mragaudit monitor alerts`")
    stream_length: int = Field(10_000, ge=1, description="most alerts kept in the stream")
    queue_length: int = Field(1_000, ge=1, description="alerts waiting to be sent; more are dropped and counted")
    plain_user_ids: bool = Field(False, description="sinks write user ids; false: keyed hashes")


class MonitorSettings(Section):
    """Everything that the monitor decides by."""

    levels: tuple[LevelName, ...] = Field(
        ("public", "internal", "confidential", "restricted"),
        min_length=2,
        description="sensitivity levels, lowest first; an unknown level counts as the highest and is reported",
    )
    sensitive_from: LevelName = Field("confidential", description="lowest level that counts as sensitive")
    min_documents: int = Field(20, ge=1, description="neither share counts before so many documents were returned")
    min_collection: int = Field(25, ge=2, description="neither share counts in a smaller collection")
    volume: Volume = Field(default_factory=Volume, description="signal: queries in a window")
    coverage: Coverage = Field(default_factory=Coverage, description="signal: share of a collection")
    sensitivity: Sensitivity = Field(default_factory=Sensitivity, description="signal: share of sensitive documents")
    composite: Composite = Field(default_factory=Composite, description="the decision")
    throttle: Throttle = Field(default_factory=Throttle, description="the response")
    roles: dict[Name, RoleLimits] = Field(default_factory=dict, description="limits by role, as the host names it")
    collective: Collective = Field(default_factory=Collective, description="all users of a tenant together")
    store: Store = Field(default_factory=Store, description="Redis")
    limits: Limits = Field(default_factory=Limits, description="bounds on input")
    alerts: Alerts = Field(default_factory=Alerts, description="alerts")

    @field_validator("levels")
    @classmethod
    def _distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("a level stands twice")
        return value

    @model_validator(mode="after")
    def _known_level(self) -> Self:
        if self.sensitive_from not in self.levels:
            raise ValueError(f'sensitive_from is "{self.sensitive_from}"; levels are: {", ".join(self.levels)}')
        return self

    @model_validator(mode="after")
    def _within_memory(self) -> Self:
        """Refuse a limit that could never be passed, since less is remembered than it allows."""
        roles = self.roles.values()
        documents = [self.coverage.max_documents, self.sensitivity.max_documents]
        documents += [most for one in roles for most in (one.max_documents, one.max_sensitive_documents)]
        queries = [self.volume.max_queries, *(one.max_queries for one in roles)]
        for key, tracked, limits in (
            ("volume.tracked_queries", self.volume.tracked_queries, queries),
            ("coverage.tracked_documents", self.coverage.tracked_documents, documents),
        ):
            largest = max((limit for limit in limits if limit is not None), default=0)
            if tracked <= largest:
                raise ValueError(f"{key} is {tracked}; it must be above {largest}, a limit that could never be passed")
        return self

    @cached_property
    def level_ranks(self) -> dict[str, int]:
        """Level → its place, 0 for the lowest."""
        return {level: position for position, level in enumerate(self.levels)}

    @cached_property
    def sensitive_levels(self) -> frozenset[str]:
        """Levels from `sensitive_from` upwards."""
        return frozenset(self.levels[self.levels.index(self.sensitive_from) :])
