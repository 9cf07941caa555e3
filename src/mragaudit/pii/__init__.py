r"""Patterns of personal data, one kind a module.

Each finder takes a text and gives half-open spans on it, ascending and disjoint. `ascii` finders are the kind
that is published and copied: `\b` and ASCII classes, on the text as it is. The `unicode` finders expect text
from `mragaudit.text.normalise(text, keep_lines=True)` and have boundaries that know no script.
"""

from __future__ import annotations
