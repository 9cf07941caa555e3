"""LPRAG as "Mind the Hook" (arXiv 2608.09001) has it: e-mail addresses and names replaced by fixed placeholders.

Not LPRAG (He et al. 2025), which perturbs entities under local differential privacy when the index is built. No noise,
no epsilon. The source names neither detector nor placeholders; both are ours (`resources/defenses/lprag.yaml`).
"""

from __future__ import annotations

# ruff: noqa: ARG002  # a hook takes what the protocol hands it
from collections.abc import Sequence

from mragaudit.defenses.base import BaseDefense, Cover, LeakClass
from mragaudit.defenses.names import NameFinder
from mragaudit.defenses.vocabulary import Vocabulary, shipped_vocabulary
from mragaudit.pii import email
from mragaudit.rag.hooks import Turn
from mragaudit.text import normalise

_LIMITS: dict[LeakClass, str] = {
    "email": "spelled-out, encoded or reversed addresses; the same address has the same placeholder everywhere",
    "person_name": "names that the rules do not find; the same person has the same placeholder everywhere",
}


class EntitySubstitution(BaseDefense):
    """The same substitution on the documents before the model and on the reply after it."""

    name = "lprag"
    title = 'entity substitution ("LPRAG" of Mind the Hook; no local differential privacy)'
    declared_hooks = ("documents", "response")
    covers = tuple(
        Cover(leak_class=kind, hook=hook, direct=True, limits=limits)
        for kind, limits in _LIMITS.items()
        for hook in ("documents", "response")
    )

    def __init__(self, *, vocabulary: Vocabulary | None = None) -> None:
        vocabulary = vocabulary if vocabulary is not None else shipped_vocabulary()
        self.placeholders = vocabulary.placeholders
        self.names = NameFinder(vocabulary)

    def substitute(self, text: str) -> str:
        """Return the text with addresses and names replaced; what is a placeholder already stays as it is.

        The placeholder follows from what it replaces alone, so documents and replies agree. Everything else is kept
        byte by byte.
        """
        mapped = normalise(text, keep_lines=True)
        found: list[tuple[int, int, str]] = []
        blanked = _blank(mapped.text, [match.span() for match in self.placeholders.pattern.finditer(mapped.text)])
        for start, end in email.find_unicode(blanked):
            found.append((start, end, self.placeholders.email(mapped.text[start:end].casefold())))
        blanked = _blank(blanked, [(start, end) for start, end, _ in found])
        for person in self.names.find(blanked):
            found.append((person.start, person.end, self.placeholders.name(person.key, script=person.script)))
        return _replaced(text, [(*mapped.original_span(start, end), put) for start, end, put in sorted(found)])

    def rewrite_documents(self, documents: Sequence[str], *, turn: Turn) -> list[str]:
        """Return the texts with their entities substituted."""
        return [self.substitute(document) for document in documents]

    def process_response(self, response: str, *, turn: Turn) -> str:
        """Return the reply with its entities substituted."""
        return self.substitute(response)


def _blank(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return text of the same length in which the spans are NUL characters."""
    return _replaced(text, [(start, end, "\0" * (end - start)) for start, end in spans])


def _replaced(text: str, found: Sequence[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, put in found:
        parts += [text[at:start], put]
        at = end
    return "".join([*parts, text[at:]])
