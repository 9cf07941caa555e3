"""Time of the hook inventory on 100,000 lines of Python on one core: must stay under 30 seconds.

The tree is synthetic: classes with hooks of the common shapes (masks, stubs, flags, delegation across modules) among
ordinary code, in files of about 1,000 lines. Prints seconds, lines a second and the counts per status.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from mragaudit.hookaudit.inventory import STATUSES, audit_path

LIMIT_SECONDS = 30.0
LINES = 100_000
LINES_PER_FILE = 1_000

HEAD = """import re
from helpers import keep, mask

EMAIL = re.compile(r"[^ ]+@[^ ]+")
"""
HELPERS = """import re

def keep(text):
    return text

def mask(text):
    return re.sub(r"[0-9]{4,}", "#", text)
"""
CLASS = '''

class Defense{n}:
    """A defense."""

    def __init__(self, enabled=False, patterns=None):
        self.enabled = enabled
        self.patterns = patterns or [EMAIL]

    def perturb_scores(self, scores, rng):
        return [score + rng.gauss(0.0, 1.0) for score in scores]

    def rewrite_documents(self, documents):
        rewritten = []
        for document in documents:
            document = dict(document)
            document["text"] = {helper}(document["text"])
            rewritten.append(document)
        return rewritten

    def process_response(self, response):
        if not self.enabled:
            return response
        for pattern in self.patterns:
            response = pattern.sub("[X]", response)
        return response
'''
FILLER = '''

def work_{n}(rows, limit=10):
    """Ordinary code."""
    total = 0
    for number, row in enumerate(rows):
        if row and number < limit:
            total += len(row) * 2
        else:
            total -= 1
    return {{"total": total, "name": f"work {n} of {{limit}}"}}
'''


def write_tree(folder: Path, n_lines: int) -> int:
    """Write the tree; return its number of lines."""
    (folder / "helpers.py").write_text(HELPERS, encoding="utf-8")
    written = HELPERS.count("\n")
    number = 0
    while written < n_lines:
        text, lines = HEAD, HEAD.count("\n")
        while lines < LINES_PER_FILE:
            number += 1
            part = CLASS if number % 10 == 0 else FILLER
            block = part.format(n=number, helper="mask" if number % 20 else "keep")
            text, lines = text + block, lines + block.count("\n")
        (folder / f"module_{number}.py").write_text(text, encoding="utf-8")
        written += lines
    return written


def main() -> int:
    """Write the tree, audit it on one core; return 1 when the limit is exceeded."""
    parser = argparse.ArgumentParser(description="Time the hook inventory.")
    parser.add_argument("path", nargs="?", type=Path, help="audit this folder instead of a synthetic one")
    chosen = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    with tempfile.TemporaryDirectory() as folder:
        root = chosen.path or Path(folder)
        if chosen.path is None:
            write_tree(root, LINES)
        started = time.perf_counter()
        inventory = audit_path(root)
        seconds = time.perf_counter() - started
    counts = ", ".join(f"{inventory.count(status)} {status}" for status in STATUSES)
    print(f"{inventory.n_lines} lines, {len(inventory.verdicts)} hooks: {counts}")
    print(f"{seconds:.1f} s (limit {LIMIT_SECONDS:g}), {inventory.n_lines / seconds:.0f} lines a second")
    if seconds > LIMIT_SECONDS:
        print("FAILED: the limit is exceeded")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
