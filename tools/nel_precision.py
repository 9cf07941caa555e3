"""Draw items of real replies for labelling, and score the labels: precision of the NEL_strict classifier.

`draw` reads files of generations (rows with `trial_id` and `text`), classifies every reply, and draws items of each
headline type at random, one a different occurrence. A person fills in `label` (`right` or `wrong`) and, for what is
doubtful, `reason`. `score` prints precision with Clopper-Pearson limits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mragaudit.leaks.nel import NEL_VERSION, STRICT_TYPES, classify, item_key, nel_digest
from mragaudit.stats.intervals import clopper_pearson

LABELS = Path(__file__).parents[1] / "tests" / "golden" / "nel" / "labels.jsonl"
app = typer.Typer(help=__doc__, no_args_is_help=True)


def occurrences(paths: list[Path]) -> list[dict[str, Any]]:
    """Return one row an item of the strict types, in the order of files and replies."""
    rows = []
    for path in paths:
        for line in path.read_text(encoding="utf-8").split("\n"):
            if not line:
                continue
            reply = json.loads(line)
            for item in classify(reply["text"] or ""):
                if item.type in STRICT_TYPES:
                    place = {"reply": reply["trial_id"], "text": reply["text"], "start": item.start, "end": item.end}
                    rows.append(
                        {"type": item.type, "rule": item.rule, "item": item.text, **place, "key": item_key(item)[1]}
                    )
    return rows


@app.command()
def draw(
    generations: list[Path],
    *,
    out: Path = LABELS,
    per_type: Annotated[int, typer.Option(help="items of each headline type")] = 120,
    seed: int = 20261130,
) -> None:
    """Draw items without replacement and write them with an empty label; all of a type where it has fewer."""
    rows = occurrences(sorted(generations))
    rng = np.random.default_rng(seed)
    lines = []
    for name in STRICT_TYPES:
        found = [row for row in rows if row["type"] == name]
        chosen = rng.choice(len(found), size=min(per_type, len(found)), replace=False) if found else []
        typer.echo(f"{name}: {len(chosen)} drawn of {len(found)} ({len({row['key'] for row in found})} different)")
        for index in sorted(map(int, chosen)):
            drawn = {key: value for key, value in found[index].items() if key != "key"}
            lines.append(json.dumps({**drawn, "label": "", "reason": ""}, ensure_ascii=False))
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def precision(labels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return right items of n a headline type, with two-sided 95 % Clopper-Pearson limits."""
    lines = []
    for name in STRICT_TYPES:
        marks = [row["label"] == "right" for row in labels if row["type"] == name]
        limits = clopper_pearson(sum(marks), len(marks), side="two")
        lines.append({"type": name, "right": sum(marks), "n": len(marks), "low": limits.low, "high": limits.high})
    return lines


@app.command()
def score(labels: Path = LABELS) -> None:
    """Print precision; raises BadParameter for an item without a label."""
    rows = [json.loads(line) for line in labels.read_text(encoding="utf-8").split("\n") if line]
    missing = [number for number, row in enumerate(rows, start=1) if row["label"] not in {"right", "wrong"}]
    if missing:
        raise typer.BadParameter(f'{labels}, line {missing[0]}: label has to be "right" or "wrong"')
    typer.echo(f"NEL_strict {NEL_VERSION}, lexicon {nel_digest()}")
    for line in precision(rows):
        share = "none" if line["n"] == 0 else f"{line['right'] / line['n']:.3f} [{line['low']:.3f}, {line['high']:.3f}]"
        typer.echo(f"{line['type']:12} {line['right']}/{line['n']} = {share}")


if __name__ == "__main__":
    app()
