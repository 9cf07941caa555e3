"""Pages of the hook audit for the tests: code that tries to break out of a page, and scores of made-up effects."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from mragaudit.hookaudit.attacks import shipped_attacks
from mragaudit.hookaudit.inventory import Inventory, audit_path
from mragaudit.hookaudit.matrix import ActiveHooks
from mragaudit.hookaudit.metrics import shipped_metrics
from mragaudit.hookaudit.predictions import (
    Effect,
    PredictionScores,
    ScoringRule,
    predict,
    score_predictions,
)
from mragaudit.hookaudit.probe.records import Observation
from mragaudit.report import hooks_views as views
from mragaudit.report.hooks_page import HooksReport, hooks_style
from mragaudit.report.page import environment
from mragaudit.report.prediction_views import scores_view

HOSTILE = "<script>window.__hit=1</script><img src=x onerror='window.__hit=1'>\u202e"
CODE = f'''class Masker:
    declared_hooks = ("response", "scores")
    def process_response(self, response):
        return response.replace("@", """{HOSTILE}""")
    def perturb_scores(self, scores, rng):
        return scores

class Noise:
    def perturb_scores(self, scores, rng):
        return [score + rng.gauss(0.0, 1.0) for score in scores]

class Gate:
    def __init__(self, strict=False):
        self.strict = strict
    def process_response(self, response):
        return "refused" if self.strict else response

class Riddle:
    def process_response(self, response):
        return elsewhere(response)

class Idle:
    def process_response(self, response):
        return response
'''
LINKS = views.SourceLinks(url="https://host.example/blob/main/{file}#L{line}", folder="src")
RULE = ScoringRule(tolerance=0.05, tolerances={"nel_strict": 0.5})


def inventory() -> Inventory:
    """The inventory of the hostile code, with a file that does not parse."""
    with TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        root.mkdir()
        (root / "code.py").write_text(CODE, encoding="utf-8")
        (root / "broken.py").write_text("def f(:\n", encoding="utf-8")
        return audit_path(root)


def hooks_report(*, links: views.SourceLinks | None = LINKS, probed: bool = True) -> HooksReport:
    """A report in which every status and every sight stands."""
    found = inventory()
    seen = Observation(
        file="code.py",
        name="Masker.process_response",
        hook="response",
        outcome="unchanged",
        n_inputs=5,
        n_changed=0,
        detail="",
    )
    return HooksReport(
        inventory=found,
        observations=(seen,) if probed else None,
        metrics=shipped_metrics(),
        attacks=shipped_attacks(),
        links=links,
    )


def made_effect(attack: str, metric: str, *, limits: tuple[float, float]) -> Effect:
    """An effect of the masker on 40 units."""
    low, high = limits
    middle = (low + high) / 2
    return Effect(
        defense="masker",
        attack=attack,
        metric=metric,
        cell="email, in domain",
        baseline=0.5,
        defended=0.5 + middle,
        difference=middle,
        ci_low=low,
        ci_high=high,
        ci_method="bootstrap_paired",
        n=40,
        n_not_evaluated=2,
    )


def made_scores() -> PredictionScores:
    """One effect that came out right, one wrong, one undecided and one that may do either."""
    defenses = (ActiveHooks(defense="masker", active=("response",)),)
    predictions = predict(defenses, shipped_metrics(), attacks=shipped_attacks())
    effects = [
        made_effect("ps", "canary_recovery", limits=(-0.5, -0.2)),
        made_effect("pm", "canary_recovery", limits=(-0.04, 0.04)),
        made_effect("ikea", "canary_recovery", limits=(-0.3, 0.1)),
        made_effect("mi", "mi_auc", limits=(-0.3, -0.1)),
    ]
    return score_predictions(predictions, effects, rule=RULE)


def scored_page() -> str:
    """A page that holds the macro of the scores alone, as another page would take it."""
    template = environment().from_string(
        '{% from "hooks_macros.html.j2" import scores %}<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        "<title>scores</title><style>{{ style | safe }}</style></head><body>{{ scores(view) }}</body></html>"
    )
    return template.render(style=hooks_style(), view=scores_view(made_scores()))
