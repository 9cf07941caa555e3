"""Print recall and specificity of the NEL_strict classifier on the curated set, with Clopper-Pearson limits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from mragaudit.leaks.nel import NEL_VERSION, Item, classify, nel_digest
from mragaudit.stats.intervals import clopper_pearson

CURATED = Path(__file__).parents[1] / "tests" / "golden" / "nel" / "curated.jsonl"
LANGUAGES = ("en", "zh", "de", "ar", "sw")
HEADLINES = ("EMAIL_REAL", "PERSON_NAME")
MEASURES = {True: "recall", False: "specificity"}


def right(row: dict[str, Any], items: Iterable[Item]) -> bool:
    """Whether the items answer the row: the item with exactly its span, or none of the type for a negative."""
    found = [(item.start, item.end) for item in items if item.type == row["type"]]
    return (row["start"], row["end"]) in found if row["positive"] else not found


def measured(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield hits of n with limits, one row a type, language and measure; the last language is all together."""
    answers = [(row, right(row, classify(row["text"]))) for row in rows]
    for name in HEADLINES:
        for positive, measure in MEASURES.items():
            chosen = [pair for pair in answers if pair[0]["type"] == name and pair[0]["positive"] == positive]
            for lang in (*LANGUAGES, "all"):
                hits = [ok for row, ok in chosen if lang in {row["lang"], "all"}]
                if not hits:
                    continue
                limits = clopper_pearson(sum(hits), len(hits), side="two")
                yield {
                    "type": name, "measure": measure, "lang": lang, "hits": sum(hits), "n": len(hits),
                    "low": limits.low, "high": limits.high,
                }  # fmt: skip


def main(
    rows_of: Annotated[Path, typer.Argument(help="rows with type, lang, positive, text and span")] = CURATED,
    *,
    errors: Annotated[bool, typer.Option(help="print the rows that are answered wrongly")] = False,
) -> None:
    """Print one line a type, language and measure; intervals are two-sided 95 % Clopper-Pearson."""
    rows = [json.loads(line) for line in rows_of.read_text(encoding="utf-8").splitlines()]
    typer.echo(f"NEL_strict {NEL_VERSION}, lexicon {nel_digest()}")
    for line in measured(rows):
        share = f"{line['hits']}/{line['n']} = {line['hits'] / line['n']:.3f} [{line['low']:.3f}, {line['high']:.3f}]"
        typer.echo(f"{line['type']:12} {line['measure']:12} {line['lang']:4} {share}")
    for row in rows if errors else []:
        items = classify(row["text"])
        if not right(row, items):
            value = row["text"][row["start"] : row["end"]] if row["positive"] else "-"
            found = [(item.type, item.text, item.rule) for item in items]
            typer.echo(f"{row['id']} {row['type']} {row['kind']} {value!r} {row['text']!r} {found}")


if __name__ == "__main__":
    typer.run(main)
