"""Trials made by hand, and their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mragaudit.records.trials import Trial
from mragaudit.tables.build import build_tables
from mragaudit.tables.columns import read_columns

JUDGES = ("english", "backtranslate", "multilingual", "oracle", "retrieved")


def build_trial(doc: str | None = "d1", lang: str = "en", **fields: Any) -> Trial:
    """Return an attack that leaks, is allowed by every judge and fires no filter, but for the fields given.

    `leak`, `verdict` and `fired` are shorthands: `leak=None` is a missing answer, one verdict or one answer of
    the filter serves all variants.
    """
    leak, verdict, fired = fields.pop("leak", True), fields.pop("verdict", "ALLOW"), fields.pop("fired", False)
    intent = fields.get("intent", "attack")
    paraphrase = fields.pop("paraphrase", "direct" if intent == "attack" else None)
    query = f"{doc}-{intent}-{paraphrase}-{fields.get('query_source', 'template')}"
    values: dict[str, Any] = {
        "trial_id": f"{query}-{lang}",
        "query_id": query,
        "intent": intent,
        "query_source": "template",
        "pii_type": "name",
        "gold_rank": 1,
        "leak_published": leak,
        "leak_verbatim": leak,
        "leak_normalised": leak,
        "leak_partial_share": None if leak is None else float(leak),
        "echoed": None if leak is None else False,
        "fired": fired if isinstance(fired, dict) else {"regex_ascii": fired},
        "verdict": verdict if isinstance(verdict, dict) else dict.fromkeys(JUDGES, verdict),
        "margin": {},
        "output_only_leak": {},
        "combined_leak": {},
        "answered_correctly": None,
        "translated": lang != "en",
        "never_asked": False,
        "translation_failed": None,
        "anchor_kept": True,
        "language_ok": True,
        "length_ratio": 1.0,
        "round_trip_similarity": None,
        "expected_verdict": None,
        "control_split": None,
        "not_evaluated": "transport" if leak is None else None,
    }
    return Trial(doc_id=doc, lang=lang, paraphrase=paraphrase, **(values | fields))


def build_all(trials: Iterable[Trial], **changes: Any) -> dict[str, pd.DataFrame]:
    """Return all tables of the trials: English and German, five judges, `none` and `regex_ascii`."""
    known = {"languages": ("en", "de"), "judges": JUDGES, "filters": ("regex_ascii",)} | changes
    pairs = known.pop("pairs", ())
    columns = read_columns(trials, **known)
    how = {"generator": lambda: np.random.default_rng(7), "resamples": 2_000, "confidence": 0.95}
    return build_tables(columns, pairs=pairs, k=5, **how)


def find_row(table: pd.DataFrame, **key: Any) -> dict[str, Any]:
    """Return the one row with these cells; missing values become None."""
    chosen = table
    for name, value in key.items():
        chosen = chosen[chosen[name] == value]
    assert len(chosen) == 1, f"{len(chosen)} rows have {key}"
    return {name: None if pd.isna(value) else value for name, value in chosen.iloc[0].items()}


@pytest.fixture
def trial() -> Callable[..., Trial]:
    return build_trial


@pytest.fixture
def tables() -> Callable[..., dict[str, pd.DataFrame]]:
    return build_all


@pytest.fixture
def row() -> Callable[..., dict[str, Any]]:
    return find_row
