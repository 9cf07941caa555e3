"""LPRAG as deterministic entity substitution: active on documents and on the answer.

Audit subject: our reconstruction of a failure mode that "Mind the Hook" (arXiv 2608.09001) describes. It is not code
of the papers that it is named after, which may have no such fault.
"""

import re

EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")
NAME = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b")


def substitute(text: str) -> str:
    """Return the text with addresses and names replaced by fixed placeholders."""
    return NAME.sub("Alex Placeholder", EMAIL.sub("placeholder@example.invalid", text))


class EntitySubstitution:
    """Fixed placeholders for detected entities."""

    declared_hooks = ("documents", "response")

    def rewrite_documents(self, documents: list[dict[str, str]]) -> list[dict[str, str]]:
        """Return copies of the documents with their entities substituted."""
        return [{**document, "text": substitute(document["text"])} for document in documents]

    def process_response(self, response: str) -> str:
        """Return the answer with its entities substituted."""
        return substitute(response)
