"""A user's own documents from JSONL or CSV, checked row by row."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

from mragaudit.corpus.tables import Row, read_rows, require_columns, shown
from mragaudit.records.documents import PII_TYPES, Document, Fact, Level, PiiType, document_key

IMPORTED = "imported"
# A user's own corpus counts as real personal data: an unlabelled document is not taken for a harmless one.
DEFAULT_LEVEL: Level = "confidential"
_MAX_CSV_FACTS = 20

_SHARED = ("id", "text", "anchor", "pii_value", "pii_type", "topic", "level")
_JSONL_COLUMNS = (*_SHARED, "pii", "facts")
_CSV_COLUMNS = (
    *_SHARED,
    *(f"{part}_{number}" for number in range(1, _MAX_CSV_FACTS + 1) for part in ("question", "answer")),
)


def import_corpus(path: Path) -> list[Document]:
    """Return the documents of a JSONL or CSV file, sorted by id.

    One item of each document is audited: `pii_value` with `pii_type`, or the one member of the list `pii`
    (JSONL), or the one member that says `planted: true`. `resources/examples/README.md` has all columns.
    Raises DataError naming file and line for a missing column, an empty cell, an anchor or item that does not
    stand in the text, an id or anchor that comes twice, an unknown kind of item or level, an unreadable row;
    messages hold ids, lengths and line numbers, never text or items.
    """
    rows = read_rows(path, csv_columns=_CSV_COLUMNS, jsonl_columns=_JSONL_COLUMNS)
    has_list = any("pii" in row.cells for row in rows)
    require_columns(rows, ("id", "text", "anchor") if has_list else ("id", "text", "anchor", "pii_value", "pii_type"))
    documents = [_document(row) for row in rows]
    _require_unique(rows, documents)
    return sorted(documents, key=document_key)


def _document(row: Row) -> Document:
    item = _planted(row)
    text, anchor, value = row.text("text"), row.text("anchor"), item.text("pii_value")
    if "\n" in anchor or "\r" in anchor:
        raise row.error('"anchor" holds a line end; an anchor is one line, since queries are')
    _require_in_text(row, "anchor", value=anchor, text=text)
    _require_in_text(row, "pii_value", value=value, text=text)
    if value.casefold() in anchor.casefold():
        raise row.error('"anchor" holds the personal item itself; an attacker would know it already')
    level = row.choice("level", get_args(Level)) if row.optional("level") else DEFAULT_LEVEL
    return Document(
        doc_id=row.text("id"),
        topic=row.optional("topic") or IMPORTED,
        pii_type=cast("PiiType", item.choice("pii_type", PII_TYPES)),
        pii_value=value,
        anchor=anchor,
        anchor_type=IMPORTED,
        level=cast("Level", level),
        text=text,
        facts=_csv_facts(row) or _jsonl_facts(row),
    )


def _planted(row: Row) -> Row:
    """Return a row with the cells `pii_value` and `pii_type` of the item that is audited."""
    if "pii" not in row.cells:
        return row
    if "pii_value" in row.cells or "pii_type" in row.cells:
        raise row.error('the row has "pii" as well as "pii_value" or "pii_type"; give one of both forms')
    items = _objects(row, "pii", allowed=("value", "type", "planted"))
    if not items:
        raise row.error('"pii" is empty; it needs the item that is audited, with value and type')
    marked = [item for item in items if _is_planted(row, item)]
    chosen = items if len(items) == 1 else marked
    if len(chosen) != 1:
        raise row.error(
            f'"pii" has {len(items)} items, of which {len(marked)} say "planted": true; '
            "exactly one item of a document is audited, so mark exactly one"
        )
    cells = {"pii_value": chosen[0].get("value"), "pii_type": chosen[0].get("type")}
    return Row(path=row.path, line=row.line, cells={name: cell for name, cell in cells.items() if cell is not None})


def _is_planted(row: Row, item: dict[str, object]) -> bool:
    planted = item.get("planted", False)
    if not isinstance(planted, bool):
        raise row.error('"planted" has to be true or false')
    return planted


def _require_in_text(row: Row, column: str, *, value: str, text: str) -> None:
    if value in text:
        return
    problem = f'"{column}" ({len(value)} characters) does not occur in "text" ({len(text)} characters)'
    if value.casefold() in text.casefold():
        raise row.error(f"{problem} in this letter case; write it as the text does")
    if "".join(value.split()) in "".join(text.split()):
        raise row.error(f"{problem} with this white space; write it as the text does")
    raise row.error(f"{problem}; it has to stand there letter by letter")


def _jsonl_facts(row: Row) -> tuple[Fact, ...]:
    facts = _objects(row, "facts", allowed=("question", "answer")) if "facts" in row.cells else []
    return tuple(
        _fact(row, question=fact.get("question"), answer=fact.get("answer"), where=f"facts[{i}]")
        for i, fact in enumerate(facts)
    )


def _csv_facts(row: Row) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    for number in range(1, _MAX_CSV_FACTS + 1):
        question, answer = row.optional(f"question_{number}"), row.optional(f"answer_{number}")
        if question is not None or answer is not None:
            facts.append(_fact(row, question=question, answer=answer, where=f"question_{number} and answer_{number}"))
    return tuple(facts)


def _fact(row: Row, *, question: object, answer: object, where: str) -> Fact:
    if not isinstance(question, str) or not isinstance(answer, str) or not question.strip() or not answer.strip():
        raise row.error(f"{where}: a fact needs a question and an answer, both texts")
    return Fact(question=question, answer=answer)


def _objects(row: Row, column: str, *, allowed: tuple[str, ...]) -> list[dict[str, object]]:
    value = row.cells[column]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise row.error(f'"{column}" has to be a list of objects with {", ".join(allowed)}')
    for item in value:
        for name in item:
            if name not in allowed:
                raise row.error(f'"{column}": the key {shown(name)} is unknown; allowed: {", ".join(allowed)}')
    return value


def _require_unique(rows: list[Row], documents: list[Document]) -> None:
    ids: dict[str, int] = {}
    anchors: dict[str, int] = {}
    for row, document in zip(rows, documents, strict=True):
        if document.doc_id in ids:
            raise row.error(
                f"the id {shown(document.doc_id)} stands already on line {ids[document.doc_id]}; ids are unique"
            )
        folded = document.anchor.casefold()
        if folded in anchors:
            raise row.error(f"the anchor stands already on line {anchors[folded]}; an anchor belongs to one document")
        ids[document.doc_id] = anchors[folded] = row.line
