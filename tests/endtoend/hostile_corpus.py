"""A corpus, queries and model answers whose every free text is hostile, in a file with a hostile name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from run_stages import scripted_settings

from mragaudit.config import Settings

MARKUP = "</script><img src=x onerror=alert(1)>"
HOSTILE = f"{MARKUP}{{{{7*7}}}}\u202eabc\u2028d\0e"
FORMULA = '=HYPERLINK("http://example.org","x")'
LONG_LINE = "x" * 1_000_000
PII_TYPES = ("name", "email", "phone", "id", "address")
FILE_NAME = f"{MARKUP.removeprefix('</')}{{{{7*7}}}}\u202e\u2028.jsonl"
"""Below a folder named `<` the whole path holds the markup; a slash and NUL can stand in no name."""


def hostile_document(number: int) -> dict[str, Any]:
    """Return a document with hostile text in every field that is free; the last one has a line of 1 MB."""
    value, anchor = f"Zora{number} {HOSTILE} Quist{number}", f"case {number} {HOSTILE}"
    text = f"{FORMULA} {HOSTILE} {anchor} belongs to {value}; the dose is 275.\n{HOSTILE}"
    if number == len(PII_TYPES):
        text += f"\n{LONG_LINE}"
    return {
        "id": f"{FORMULA}{number}{HOSTILE}",
        "text": text,
        "anchor": anchor,
        "pii_value": value,
        "pii_type": PII_TYPES[number - 1],
        "topic": f"@{HOSTILE}",
        "facts": [{"question": f"What is the dose in {anchor}? {HOSTILE}", "answer": f"275 {HOSTILE}"}],
    }


def hostile_queries() -> list[dict[str, Any]]:
    """Return queries by people: one in English, one in Arabic, one of 1 MB."""
    shared = {"paraphrase": "direct", "author": f"+{HOSTILE}"}
    return [
        {"anchor": f"case 1 {HOSTILE}", "lang": "en", "text": f"{FORMULA} who? {HOSTILE}", **shared},
        {"anchor": f"case 2 {HOSTILE}", "lang": "ar", "text": f"من هو صاحب {HOSTILE}؟", **shared},
        {"anchor": f"case 3 {HOSTILE}", "lang": "en", "text": f"who? {HOSTILE} {LONG_LINE}", **shared},
    ]


def write_hostile(folder: Path) -> tuple[Path, Path]:
    """Write corpus and queries below a folder and return their paths, each with a hostile name."""
    below = folder / "<"
    below.mkdir()
    corpus, queries = below / FILE_NAME, below / f"queries {FILE_NAME}"
    _write(corpus, [hostile_document(number) for number in range(1, len(PII_TYPES) + 1)])
    _write(queries, hostile_queries())
    return corpus, queries


def hostile_settings(folder: Path) -> Settings:
    """Return the settings of a run in which translator, judge and generator answer with hostile text too."""
    corpus, queries = write_hostile(folder)
    return scripted_settings(
        run="hostile",
        languages=["en", "ar"],
        corpus={"source": str(corpus)},
        queries={"source": str(queries), "paraphrases": ["direct"]},
        retrieve={"k": 2},
        judge={"mode": "parse", "variants": ["english", "multilingual", "retrieved"]},
        roles={
            "translator": _answering({"case 1": HOSTILE, "case 2": f"{FORMULA} {LONG_LINE}"}),
            "back_translator": _answering({"case 3": HOSTILE}),
            "judge": _answering({"case 1": HOSTILE}),
            "generator": {**_answering({"case 4": f"{FORMULA} {LONG_LINE}"}), "model": "echo"},
        },
    )


def _answering(answers: Mapping[str, str]) -> dict[str, Any]:
    return {"options": {"answers": dict(answers)}}


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
