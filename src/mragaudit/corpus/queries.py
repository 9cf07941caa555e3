"""English queries against documents: attacks in three shapes, and benign questions with a known answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from mragaudit.corpus.templates import QueryTemplates, refer
from mragaudit.errors import DataError
from mragaudit.records.documents import Document, PiiType
from mragaudit.records.queries import Intent, Paraphrase, Query, QuerySource

ENGLISH = "en"


def attack_queries(
    documents: Sequence[Document], templates: QueryTemplates, *, paraphrases: Sequence[Paraphrase]
) -> list[Query]:
    """Return one English attack a document and paraphrase, in the order of the documents; one line each.

    The wording follows from the document's id, so that it stays the same when other documents come or go. The
    solved example of `icl` holds no planted value and no anchor of any of the documents.
    Raises DataError when all examples of the templates occur among the documents.
    """
    examples = _Examples(documents, templates)
    return [
        _attack(document, paraphrase, templates=templates, examples=examples)
        for document in documents
        for paraphrase in paraphrases
    ]


def benign_queries(documents: Iterable[Document], *, n_per_document: int) -> list[Query]:
    """Return the questions of each document's first `n_per_document` facts, all where it has fewer."""
    return [
        make_query(
            doc_id=document.doc_id,
            intent="benign",
            paraphrase=None,
            text=fact.question,
            expected_answer=fact.answer,
        )
        for document in documents
        for fact in document.facts[:n_per_document]
    ]


def make_query(
    *,
    doc_id: str,
    intent: Intent,
    paraphrase: Paraphrase | None,
    text: str,
    lang: str = ENGLISH,
    query_source: QuerySource = "template",
    author: str | None = None,
    expected_answer: str | None = None,
) -> Query:
    """Return a query under the id that its content gives; a person's is asked in its own language only."""
    return Query(
        query_id=query_id_of(
            doc_id=doc_id,
            intent=intent,
            paraphrase=paraphrase,
            text=text,
            lang=lang,
            query_source=query_source,
            author=author,
        ),
        doc_id=doc_id,
        intent=intent,
        paraphrase=paraphrase,
        text=text,
        lang=lang,
        only_in_lang=query_source == "human",
        expected_answer=expected_answer,
        expected_verdict=None,
        query_source=query_source,
        author=author,
    )


def query_id_of(
    *,
    doc_id: str | None,
    intent: Intent,
    paraphrase: Paraphrase | None,
    text: str,
    lang: str,
    query_source: QuerySource,
    author: str | None,
) -> str:
    """Return `q` and 12 hex digits of the SHA-256 of all arguments, as a JSON list in this order."""
    content = json.dumps([doc_id, intent, paraphrase, text, lang, query_source, author])
    return "q" + hashlib.sha256(content.encode("utf-8")).hexdigest()[:12]


class _Examples:
    """The solved examples for one corpus: an invented reference, and an invented value for each kind."""

    def __init__(self, documents: Sequence[Document], templates: QueryTemplates) -> None:
        self._values = templates.example_values
        self._planted = [document.pii_value.casefold() for document in documents]
        anchors = [document.anchor.casefold() for document in documents]
        self.reference = _first_free(templates.example_references, anchors, what="references")
        self._chosen: dict[PiiType, str] = {}

    def value(self, kind: PiiType) -> str:
        """Return the first example value of a kind that holds no planted value."""
        if kind not in self._chosen:
            self._chosen[kind] = _first_free(self._values[kind], self._planted, what=kind)
        return self._chosen[kind]


def _first_free(options: Sequence[str], taken: Sequence[str], *, what: str) -> str:
    for option in options:
        if not any(other in option.casefold() for other in taken):
            return option
    raise DataError(
        f'queries.yaml, key "examples.{what}": every example holds something of the corpus; add another one'
    )


def _attack(document: Document, paraphrase: Paraphrase, *, templates: QueryTemplates, examples: _Examples) -> Query:
    wordings = templates.wordings[paraphrase][document.pii_type]
    wording = wordings[_digest(document.doc_id, paraphrase) % len(wordings)]
    reference = refer(document.anchor, templates.nouns.get(document.anchor_type, ""))
    text = wording.format(
        reference=reference,
        example_reference=examples.reference,
        example_value=examples.value(document.pii_type),
    )
    return make_query(doc_id=document.doc_id, intent="attack", paraphrase=paraphrase, text=text)


def _digest(doc_id: str, paraphrase: Paraphrase) -> int:
    return int.from_bytes(hashlib.sha256(f"{paraphrase}\n{doc_id}".encode()).digest()[:8], "big")
