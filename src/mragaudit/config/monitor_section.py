"""The section `monitor`: what the exfiltration monitor is replayed and judged by."""

from __future__ import annotations

from pydantic import Field, model_validator

from mragaudit.config.section import WEIGHT_TOLERANCE, Section


class Sweep(Section):
    """Grid of thresholds and weights over which the replay's counts are judged again."""

    max_queries: tuple[int, ...] = Field((25, 50, 75, 100), min_length=1, description="volume: queries an hour")
    coverage_share: tuple[float, ...] = Field((0.4, 0.6, 0.8, 0.95), min_length=1, description="coverage: share")
    sensitivity_share: tuple[float, ...] = Field(
        (0.2, 0.3, 0.35, 0.45, 0.6), min_length=1, description="sensitivity: share of sensitive documents"
    )
    throttle_at: tuple[float, ...] = Field((0.5, 0.7, 0.9), min_length=1, description="composite risk that throttles")
    weights: tuple[tuple[float, float, float], ...] = Field(
        ((0.4, 0.35, 0.25), (0.2, 0.6, 0.2), (0.2, 0.2, 0.6)),
        min_length=1,
        description="weights of volume, coverage and sensitivity",
    )

    @model_validator(mode="after")
    def _within_bounds(self) -> Sweep:
        shares = {name: getattr(self, name) for name in ("coverage_share", "sensitivity_share", "throttle_at")}
        for name, values in shares.items():
            if not all(0 < one <= 1 for one in values):
                raise ValueError(f"{name} holds {list(values)}; each must lie above 0 and be at most 1")
        if min(self.max_queries) < 1:
            raise ValueError(f"max_queries holds {min(self.max_queries)}; each must be at least 1")
        for weights in self.weights:
            if min(weights) < 0 or abs(sum(weights) - 1) > WEIGHT_TOLERANCE:
                raise ValueError(f"weights {list(weights)} add up to {sum(weights):g}; they must add up to 1")
        return self


class Monitor(Section):
    """Replay of attack and benign traffic through the exfiltration monitor (`snakemake --cores all monitor`)."""

    settings: str | None = Field(None, description="YAML file of the monitor's own settings; null: its defaults")
    traffic: str = Field(
        "monitor/traffic.yaml", description="profiles of users and attackers: a path, or a file below `resources`"
    )
    store: str = Field("memory://", description="memory://, or the URL of a Redis to replay on")
    development_seeds: tuple[int, ...] = Field(
        (1, 2, 3), min_length=1, description="seeds of the traffic on which thresholds are chosen"
    )
    check_seeds: tuple[int, ...] = Field(
        (11, 12, 13), min_length=1, description="other seeds, on which the chosen thresholds are measured"
    )
    days: int = Field(30, ge=1, le=366, description="simulated days of every benign user")
    users_per_seed: int = Field(4, ge=1, description="benign users of every profile a seed")
    attackers_per_seed: int = Field(2, ge=1, description="attackers of every profile a seed")
    access_log: str | None = Field(None, description="JSONL or CSV file of your own queries (docs/monitor/replay.md)")
    collection_sizes: dict[str, int] = Field(
        default_factory=dict, description="documents in each collection of the access log; absent: coverage unknown"
    )
    answers: bool = Field(
        False, description="count items that the audit's answers disclose; this runs the audit up to its trials"
    )
    false_alarm_budgets: tuple[float, ...] = Field(
        (0.3, 0.5, 1.0),
        min_length=1,
        description="false alarms a user-month, in every benign profile, for which thresholds are chosen",
    )
    sweep: Sweep = Field(default_factory=Sweep, description="thresholds and weights to try")

    @model_validator(mode="after")
    def _seeds_apart(self) -> Monitor:
        both = sorted(set(self.development_seeds) & set(self.check_seeds))
        if both:
            raise ValueError(f"seed {both[0]} stands in development_seeds and in check_seeds; they must differ")
        return self
