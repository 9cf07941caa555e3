"""Which trials are repeated: a random sample that seed and trial ids alone decide."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mragaudit.config import Settings, load_settings
from mragaudit.records.base import write_records
from mragaudit.records.queries import Query, query_key
from mragaudit.stages.repeats import draw_trials, repeated_trials, repeats_calls

HTTP = {"backend": "openai_http", "options": {"base_url": "http://127.0.0.1:1/v1"}}


def settings(**over: Any) -> Settings:
    return load_settings({"languages": ["en", "de"], "noise": {"stages": "all", "trials": 6}, **over})


def query(number: int, intent: str = "attack", **fields: Any) -> Query:
    values: dict[str, Any] = {"doc_id": None if intent == "control" else f"d{number}", "lang": "en"}
    values |= {"paraphrase": "direct" if intent == "attack" else None, "only_in_lang": intent == "control"}
    values |= {"expected_answer": None, "expected_verdict": "BLOCK" if intent == "control" else None}
    values |= {"query_source": "control" if intent == "control" else "template"}
    return Query(query_id=f"{intent}{number}", intent=intent, text="?", **(values | fields))


QUERIES = [query(number, intent) for number, intent in product(range(20), ("attack", "benign", "control"))]


def test_trials_are_taken_until_enough_attacks_are_among_them() -> None:
    chosen = draw_trials("generate", QUERIES, settings=settings())
    attacks = {name for name in chosen if name.startswith("attack")}
    assert len(attacks) == 6
    assert chosen - attacks
    assert not {name for name in chosen if name.startswith("control")}


def test_the_sample_depends_on_the_seed_and_not_on_the_order_of_queries() -> None:
    chosen = draw_trials("judge", QUERIES, settings=settings())
    assert draw_trials("judge", QUERIES[::-1], settings=settings()) == chosen
    assert draw_trials("judge", QUERIES, settings=settings(seed=1)) != chosen


def test_a_larger_sample_holds_the_smaller_one() -> None:
    small = draw_trials("judge", QUERIES, settings=settings())
    large = draw_trials("judge", QUERIES, settings=settings(noise={"stages": "all", "trials": 12}))
    assert small < large


def test_all_stages_draw_from_the_trials_that_they_ask_about() -> None:
    """German ones alone are translated; a query written in German is translated back, and not before."""
    every = settings(noise={"stages": "all", "trials": 1000})
    human = query(99, lang="de", only_in_lang=True, query_source="human")
    drawn = {
        stage: draw_trials(stage, [*QUERIES, human], settings=every)
        for stage in ("translate", "backtranslate", "judge", "generate")
    }
    german = {f"{intent}{number}-de" for number, intent in product(range(20), ("attack", "benign"))}
    assert drawn["translate"] == german
    assert drawn["backtranslate"] == german | {"attack99-de"}
    assert drawn["judge"] == drawn["generate"] == drawn["backtranslate"] | {name[:-2] + "en" for name in german}


@pytest.mark.parametrize(
    ("stages", "backend", "answer"),
    [
        ("auto", {"backend": "llama_cpp"}, False),
        ("auto", HTTP, True),
        ("all", {"backend": "llama_cpp"}, True),
        ("none", HTTP, False),
    ],
)
def test_auto_repeats_where_the_backend_is_not_bit_stable(
    stages: str, backend: dict[str, Any], *, answer: bool
) -> None:
    chosen = settings(noise={"stages": stages}, roles={"generator": backend})
    assert repeats_calls("generate", chosen) is answer


def test_a_stage_that_repeats_nothing_reads_no_file() -> None:
    assert repeated_trials("judge", [Path("nowhere.jsonl")], settings=settings(noise={"stages": "none"})) == frozenset()


def test_the_files_of_all_shards_are_drawn_from(tmp_path: Path) -> None:
    halves = {tmp_path / "1.jsonl": QUERIES[::2], tmp_path / "2.jsonl": QUERIES[1::2]}
    for path, rows in halves.items():
        write_records(path, rows, key=query_key)
    assert repeated_trials("judge", halves, settings=settings()) == draw_trials("judge", QUERIES, settings=settings())
