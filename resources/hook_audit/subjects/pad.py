"""PAD as a regex masker of the answer: active there, and nowhere else.

Audit subject: our reconstruction of a failure mode that "Mind the Hook" (arXiv 2608.09001) describes. It is not code
of the papers that it is named after, which may have no such fault.
"""

import re

PATTERNS = (
    ("EMAIL", re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")),
    ("ID", re.compile(r"\b\d{9}\b")),
)


class RegexMasker:
    """Replaces addresses and identifiers by their type."""

    declared_hooks = ("response",)

    def process_response(self, response: str) -> str:
        """Return the answer with every match masked."""
        for kind, pattern in PATTERNS:
            response = pattern.sub(f"[{kind}]", response)
        return response
