"""Times the aggregate stage on a million synthetic trials: 90 seconds, 4 GB, two cores.

Run it as `python benchmarks/aggregate.py` (`--trials N` for another number). It writes `trials.jsonl` to a
temporary folder (about 1.2 GB a million), runs the stage as a process of its own on at most two cores, and prints:

- "wall": seconds from the start of that process to its end, Python's imports included. On a machine that does
  other work "cpu" (user and system seconds of the process) says more.
- "peak": the process's largest resident set.

A limit that is exceeded gives exit code 1. Trials: 20 a document (direct, summary, icl and one benign question in
five languages), all five judge variants with margins, both filters, unparsed and missing verdicts, failed and lost
translations, lost answers; and 80 controls a language. Lines are in no order of documents, as in a real run.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import numpy as np

from mragaudit.config import load_settings
from mragaudit.paths import TABLES
from mragaudit.records.base import encode_record
from mragaudit.records.documents import PII_TYPES
from mragaudit.records.queries import PARAPHRASES
from mragaudit.records.results import Verdict
from mragaudit.records.trials import Trial
from mragaudit.stages import aggregate

TRIALS = 1_000_000
LIMIT_SECONDS, LIMIT_GB, CORES = 90.0, 4.0, 2

LANGUAGES = ("en", "zh", "de", "ar", "sw")
JUDGES = ("english", "backtranslate", "multilingual", "oracle", "retrieved")
FILTERS = ("regex_ascii", "regex_unicode")
KINDS = [(lang, paraphrase) for lang in LANGUAGES for paraphrase in (*PARAPHRASES, None)]
CONTROLS_PER_LANGUAGE = 80
PATTERNS = 1_000
"""Documents whose outcomes are drawn; further documents repeat them under other ids."""
BATCH_LINES = 10_000
PLACEHOLDER = b"@@@@@@@@"


def attack_or_benign(generator: np.random.Generator, lang: str, paraphrase: Any, *, pattern: int) -> Trial:
    """Return one random trial of a document whose id is still a placeholder."""
    chance = generator.random(8)
    lost, asked = bool(chance[0] < 0.01), bool(chance[1] < 0.995)
    answered = asked and not lost
    leak = bool(chance[2] < 0.4) if answered else None
    fired = {name: bool(generator.random() < 0.3) if answered else None for name in FILTERS}
    verdict: dict[str, Verdict | None] = {name: random_verdict(generator) for name in JUDGES}
    output_only = {"none": leak} | {name: leak and not hit for name, hit in fired.items()}
    query = f"q{PLACEHOLDER.decode()}{paraphrase or 'benign'}"
    return Trial(
        trial_id=f"{query}-{lang}",
        query_id=query,
        doc_id=f"d{PLACEHOLDER.decode()}",
        lang=lang,
        intent="attack" if paraphrase else "benign",
        paraphrase=paraphrase,
        query_source="template",
        pii_type=PII_TYPES[pattern % len(PII_TYPES)],
        gold_rank=int(chance[3] * 5) + 1 if asked and chance[4] < 0.8 else None,
        leak_published=leak,
        leak_verbatim=leak,
        leak_normalised=leak,
        leak_partial_share=round(float(chance[5]), 6) if answered else None,
        echoed=False if answered else None,
        fired=fired,
        verdict=verdict,
        margin={name: round(float(generator.normal()), 6) for name in JUDGES},
        output_only_leak=output_only,
        combined_leak={
            judge: {name: leaked and given == "ALLOW" for name, leaked in output_only.items()}
            for judge, given in verdict.items()
        },
        answered_correctly=bool(chance[6] < 0.5) if answered and not paraphrase else None,
        translated=lang != "en",
        never_asked=not asked,
        translation_failed="unchanged" if lang != "en" and chance[7] < 0.05 else None,
        anchor_kept=bool(chance[7] < 0.9),
        language_ok=None if chance[6] < 0.02 else bool(chance[6] < 0.95),
        length_ratio=round(float(0.5 + chance[5]), 6),
        round_trip_similarity=round(float(chance[4]), 6) if lang != "en" else None,
        expected_verdict=None,
        control_split=None,
        not_evaluated=None if answered else "transport: the server closed the connection",
    )


def random_verdict(generator: np.random.Generator) -> Verdict | None:
    """Return a verdict, in one of fifty cases none at all."""
    verdicts: tuple[Verdict | None, ...] = (*get_args(Verdict), None)
    return verdicts[int(generator.choice(len(verdicts), p=[0.5, 0.4, 0.08, 0.02]))]


def control(base: Trial, number: int) -> Trial:
    """Return a judge's control with the verdicts of another trial: no document, no answer."""
    attack, check = number % 2 == 0, number % 4 > 1
    query = f"qcontrol{number:04d}"
    return msgspec.structs.replace(
        base,
        trial_id=f"{query}-{base.lang}",
        query_id=query,
        doc_id=None,
        intent="control",
        paraphrase=None,
        query_source="control",
        pii_type=None,
        gold_rank=None,
        leak_published=None,
        leak_verbatim=None,
        leak_normalised=None,
        leak_partial_share=None,
        echoed=None,
        fired={},
        output_only_leak={"none": None},
        combined_leak={name: {"none": None} for name in JUDGES},
        answered_correctly=None,
        translated=False,
        never_asked=False,
        translation_failed=None,
        anchor_kept=None,
        round_trip_similarity=None,
        expected_verdict="BLOCK" if attack else "ALLOW",
        control_split="check" if check else "calibration",
        not_evaluated=None,
    )


def trial_lines(n_trials: int) -> Iterator[bytes]:
    """Yield the lines of controls and of documents, about `n_trials` in all."""
    generator = np.random.default_rng(2026)
    patterns = [
        [encode_record(attack_or_benign(generator, *kind, pattern=number)) + b"\n" for kind in KINDS]
        for number in range(PATTERNS)
    ]
    for lang in LANGUAGES:
        for number in range(CONTROLS_PER_LANGUAGE):
            yield encode_record(control(attack_or_benign(generator, lang, None, pattern=0), number)) + b"\n"
    n_documents = max(1, (n_trials - len(LANGUAGES) * CONTROLS_PER_LANGUAGE) // len(KINDS))
    for slot in scattered(n_documents * len(KINDS)):
        document, kind = divmod(slot, len(KINDS))
        yield patterns[document % PATTERNS][kind].replace(PLACEHOLDER, b"%08x" % document)


def scattered(n: int) -> Iterator[int]:
    """Yield the numbers below n, each once, neighbours far apart."""
    step = next(step for step in range(max(1, int(n * 0.618)), 2 * n + 2) if np.gcd(step, n) == 1)
    return (position * step % n for position in range(n))


def write_trials(path: Path, n_trials: int) -> int:
    """Write the trials in batches; return how many there are."""
    written, batch = 0, []
    with path.open("wb") as handle:
        for line in trial_lines(n_trials):
            batch.append(line)
            if len(batch) == BATCH_LINES:
                handle.write(b"".join(batch))
                written += len(batch)
                batch.clear()
        handle.write(b"".join(batch))
    return written + len(batch)


def run_stage(folder: Path) -> None:
    """Make all tables of the trials in a folder, with the settings of a run."""
    settings = load_settings(
        {"languages": list(LANGUAGES), "judge": {"variants": list(JUDGES)}, "filter": {"variants": list(FILTERS)}}
    )
    aggregate.run(
        trials=folder / "trials.jsonl",
        noise=folder / "noise.jsonl",
        tables={name: folder / "tables" / f"{name}.csv" for name in TABLES},
        settings=settings,
    )


def measure(folder: Path) -> tuple[float, float, float]:
    """Run the stage in a process of its own; return wall seconds, CPU seconds and peak gigabytes."""
    command = [sys.executable, __file__, "--stage", str(folder)]
    started = time.perf_counter()
    subprocess.run(command, check=True)  # noqa: S603  # our own file and a folder that we made
    wall = time.perf_counter() - started
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20


def main() -> int:
    """Write the trials, measure the stage; return 1 when a limit is exceeded."""
    parser = argparse.ArgumentParser(description="Time the aggregate stage on synthetic trials.")
    parser.add_argument("--trials", type=int, default=TRIALS, help="about how many trials to make")
    parser.add_argument("--stage", type=Path, help="only make the tables of the trials in this folder")
    chosen = parser.parse_args()
    if chosen.stage:
        run_stage(chosen.stage)
        return 0
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        n_trials = write_trials(Path(folder) / "trials.jsonl", chosen.trials)
        (Path(folder) / "noise.jsonl").touch()
        size = (Path(folder) / "trials.jsonl").stat().st_size / 1e9
        print(f"{n_trials} trials, {size:.2f} GB, written in {time.perf_counter() - started:.1f} s")
        wall, cpu, peak = measure(Path(folder))
    print(f"wall {wall:.1f} s (limit {LIMIT_SECONDS:g}), cpu {cpu:.1f} s, peak {peak:.2f} GB (limit {LIMIT_GB:g})")
    print(f"{n_trials / wall:.0f} trials a second")
    if wall > LIMIT_SECONDS or peak > LIMIT_GB:
        print("FAILED: a limit is exceeded")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
