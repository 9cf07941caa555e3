from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mragaudit.corpus.human_queries import import_queries
from mragaudit.corpus.importing import import_corpus
from mragaudit.errors import DataError
from mragaudit.records.base import read_records, write_records
from mragaudit.records.documents import Document, Fact, document_key

EXAMPLES = Path(__file__).parents[3] / "resources" / "examples"
LANGUAGES = ("en", "zh", "de", "ar", "sw")
GOOD = {
    "id": "a1",
    "text": "Project Alpha is led by Ottilie Brandt.",
    "anchor": "Project Alpha",
    "pii_value": "Ottilie Brandt",
    "pii_type": "name",
}
HEADER = "id,text,anchor,pii_value,pii_type"
CSV_ROW = "a1,Project Alpha is led by Ottilie Brandt.,Project Alpha,Ottilie Brandt,name"
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "{{7*7}} {0} %s",
    "\u202egnp.exe",
    "a\u2028b\u2029c\x85d\x0b",
    "nul\x00nul",
    '=HYPERLINK("x"), +1; -1; @x',
    "x" * 1_000_000,
)


def jsonl(tmp_path: Path, *rows: dict[str, object] | str) -> Path:
    path = tmp_path / "corpus.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")
    return path


def raw(tmp_path: Path, content: bytes, *, name: str = "corpus.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def good(**changes: object) -> dict[str, object]:
    row: dict[str, object] = {**GOOD, **changes}
    return {name: value for name, value in row.items() if value is not ...}


def test_the_examples_say_the_same_in_both_formats() -> None:
    documents = import_corpus(EXAMPLES / "corpus.jsonl")
    assert len(documents) == 6
    assert {document.pii_type for document in documents} == {"name", "email", "phone", "id", "address"}
    assert documents == import_corpus(EXAMPLES / "corpus.csv")


def test_the_item_marked_as_planted_is_audited() -> None:
    ward = next(document for document in import_corpus(EXAMPLES / "corpus.jsonl") if document.doc_id == "ward-0033")
    assert (ward.pii_type, ward.pii_value) == ("id", "900-41-2207")


def test_absent_columns_get_their_documented_values(tmp_path: Path) -> None:
    assert import_corpus(jsonl(tmp_path, GOOD)) == [
        Document(
            doc_id="a1",
            topic="imported",
            pii_type="name",
            pii_value="Ottilie Brandt",
            anchor="Project Alpha",
            anchor_type="imported",
            level="confidential",
            text="Project Alpha is led by Ottilie Brandt.",
            facts=(),
        )
    ]


def test_topic_level_and_facts_are_taken_over(tmp_path: Path) -> None:
    path = jsonl(tmp_path, good(topic="t", level="public", facts=[{"question": "Q?", "answer": "12"}]))
    (document,) = import_corpus(path)
    assert (document.topic, document.level) == ("t", "public")
    assert document.facts == (Fact(question="Q?", answer="12"),)


def test_rows_are_sorted_by_id(tmp_path: Path) -> None:
    other = good(id="a0", text="Project Beta: Ottilie Brandt", anchor="Project Beta")
    assert [document.doc_id for document in import_corpus(jsonl(tmp_path, GOOD, other))] == ["a0", "a1"]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_byte_order_mark_blank_lines_and_both_line_ends_are_tolerated(tmp_path: Path, line_end: str) -> None:
    content = b"\xef\xbb\xbf" + f"{HEADER}{line_end}{line_end}{CSV_ROW}{line_end}".encode()
    lines = b"\xef\xbb\xbf" + f"{json.dumps(GOOD)}{line_end}{line_end}".encode()
    assert import_corpus(raw(tmp_path, content)) == import_corpus(raw(tmp_path, lines, name="c.jsonl"))


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_hostile_text_is_imported_unchanged_in_every_free_field(tmp_path: Path, text: str, suffix: str) -> None:
    anchor, value = f"A{text}A", f"B{text}B"
    whole = f"{anchor} has {value}."
    row = {
        "id": f"i{text}",
        "text": whole,
        "anchor": anchor,
        "pii_value": value,
        "pii_type": "name",
        "topic": text,
    }
    path = tmp_path / f"corpus{suffix}"
    if suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerows([list(row), list(row.values())])
    else:
        path = jsonl(tmp_path, dict(row))
    limit = csv.field_size_limit()
    (document,) = import_corpus(path)
    assert (document.doc_id, document.text, document.anchor) == (f"i{text}", whole, anchor)
    assert (document.pii_value, document.topic) == (value, text)
    assert csv.field_size_limit() == limit
    write_records(tmp_path / "out.jsonl", [document], key=lambda row: row.doc_id)
    assert read_records(tmp_path / "out.jsonl", Document, key=document_key) == [document]


JSONL_CASES: dict[str, tuple[list[dict[str, object] | str], str]] = {
    "missing anchor": ([GOOD, good(id="a2", anchor=...)], r'line 2: "anchor" is missing or empty'),
    "null anchor": ([GOOD, good(id="a2", anchor=None)], r'line 2: "anchor" is missing or empty'),
    "anchor nowhere": ([good(anchor=...)], r'line 1: the column "anchor" is missing'),
    "no item at all": ([good(pii_value=...)], r'line 1: the column "pii_value" is missing'),
    "anchor not in text": (
        [good(anchor="Project Omega")],
        r'line 1: "anchor" \(13 characters\) does not occur in "text"',
    ),
    "anchor in other case": (
        [good(anchor="project alpha")],
        r"in this letter case; write it as the text does",
    ),
    "value not in text": (
        [good(pii_value="Greta Holm")],
        r'"pii_value" \(10 characters\) .*; it has to stand there letter',
    ),
    "value with other space": (
        [good(pii_value="Ottilie  Brandt")],
        r"with this white space; write it as the text does",
    ),
    "anchor holds the value": (
        [good(anchor="Alpha is led by Ottilie Brandt")],
        r'"anchor" holds the personal item itself',
    ),
    "two-line anchor": ([good(text="A\nB Ottilie Brandt", anchor="A\nB")], r'"anchor" holds a line end'),
    "duplicate id": (
        [GOOD, "", good(anchor="Alpha")],
        r"line 3: the id 'a1' stands already on line 1; ids are unique",
    ),
    "duplicate anchor": (
        [GOOD, good(id="a2", text="PROJECT ALPHA Ottilie Brandt", anchor="PROJECT ALPHA")],
        r"line 2: the anchor stands already on line 1",
    ),
    "empty text": ([good(text="")], r'line 1: "text" is missing or empty'),
    "blank text": ([good(text=" \n ")], r'line 1: "text" is missing or empty'),
    "number as id": ([good(id=12)], r'line 1: "id" is a number; it has to be a text in quotes'),
    "unknown type": ([good(pii_type="e-mail")], r'"pii_type" has an unknown value; did you mean "email"\?'),
    "unknown level": (
        [good(level="secret")],
        r'"level" has an unknown value; allowed: confidential, internal, public',
    ),
    "unknown key": ([good(ancor="x")], r"line 1: the key 'ancor' is unknown; did you mean \"anchor\"\?"),
    "key twice": (['{"id": "a1", "id": "a2"}'], r"line 1: a key stands twice in an object"),
    "invalid JSON": ([GOOD, '{"id": "a2",'], r"line 2: this is no valid JSON"),
    "lone surrogate": (['{"id": "\\ud800"}'], r"line 1: this is no valid JSON"),
    "deep nesting": (["[" * 100_000], r"line 1: this is no valid JSON"),
    "no object": (["[1]"], r"line 1: this is a list; one object in braces"),
    "empty file": ([], r"the file holds no row"),
    "blank lines only": (["", " "], r"the file holds no row"),
    "empty list": ([good(pii_value=..., pii_type=..., pii=[])], r'"pii" is empty'),
    "two items unmarked": (
        [good(pii_value=..., pii_type=..., pii=[{"value": "Ottilie", "type": "name"}] * 2)],
        r'"pii" has 2 items, of which 0 say "planted": true; exactly one',
    ),
    "two items marked": (
        [good(pii_value=..., pii_type=..., pii=[{"value": "Ottilie", "type": "name", "planted": True}] * 2)],
        r'"pii" has 2 items, of which 2 say',
    ),
    "mark that is no truth value": (
        [good(pii_value=..., pii_type=..., pii=[{"value": "Ottilie", "type": "name", "planted": "no"}])],
        r'"planted" has to be true or false',
    ),
    "both forms": ([good(pii=[{"value": "Ottilie", "type": "name"}])], r'"pii" as well as "pii_value"'),
    "item key": (
        [good(pii_value=..., pii_type=..., pii=[{"val": "Ottilie", "type": "name"}])],
        r"\"pii\": the key 'val' is unknown; allowed: value, type, planted",
    ),
    "pii is a text": (
        [good(pii_value=..., pii_type=..., pii="Ottilie")],
        r'"pii" has to be a list of objects',
    ),
    "half a fact": ([good(facts=[{"question": "Q?"}])], r"facts\[0\]: a fact needs a question and an answer"),
    "fact with a number": ([good(facts=[{"question": "Q?", "answer": 3}])], r"facts\[0\]: .* both texts"),
}


@pytest.mark.parametrize("case", JSONL_CASES)
def test_a_bad_jsonl_row_is_refused_by_line(tmp_path: Path, case: str) -> None:
    rows, message = JSONL_CASES[case]
    path = jsonl(tmp_path, *rows)
    with pytest.raises(DataError, match=message) as caught:
        import_corpus(path)
    assert str(path) in str(caught.value)
    assert not any(word in str(caught.value) for word in ("Ottilie", "Brandt", "Greta", "Holm", "secret"))


CSV_CASES = {
    "column missing": (f"{HEADER[:-9]}\n{CSV_ROW[:-5]}\n", r'the column "pii_type" is missing'),
    "column unknown": (
        f"{HEADER},ancor\n{CSV_ROW},x\n",
        r'line 1: column 6 of the header is unknown; did you mean "anchor"',
    ),
    "column twice": (f"{HEADER},id\n{CSV_ROW},x\n", r"line 1: a column stands in the header twice"),
    "no header": (f"{CSV_ROW}\n{CSV_ROW}\n", r"line 1: column 1 of the header is unknown"),
    "semicolons": (f"{HEADER}\n".replace(",", ";"), r"line 1: the columns are separated by semicolons"),
    "header only": (f"{HEADER}\n", r"the file holds no row"),
    "empty": ("", r"the file holds no row"),
    "too many cells": (f"{HEADER}\n{CSV_ROW},x\n", r"line 2: the row has 6 cells and the header 5"),
    "too few cells": (f"{HEADER}\n{CSV_ROW}\na2,b\n", r"line 3: the row has 2 cells and the header 5"),
    "open quote": (f'{HEADER}\n{CSV_ROW}\na2,"open\nmore\n', r"line 3: this is no valid CSV"),
    "after a two-line cell": (
        f'{HEADER}\na0,"Beta\nat 1 Elm Street\nTown",Beta,"1 Elm Street\nTown",address\n{CSV_ROW},x\n',
        r"line 6: the row has 6 cells",
    ),
    "half a fact": (f"{HEADER},question_1\n{CSV_ROW},Q?\n", r"line 2: question_1 and answer_1: a fact needs"),
}


@pytest.mark.parametrize("case", CSV_CASES)
def test_a_bad_csv_row_is_refused_by_line(tmp_path: Path, case: str) -> None:
    content, message = CSV_CASES[case]
    with pytest.raises(DataError, match=message) as caught:
        import_corpus(raw(tmp_path, content.encode()))
    assert "Ottilie" not in str(caught.value)


@pytest.mark.parametrize("name", ["corpus.csv", "corpus.jsonl"])
def test_another_encoding_is_refused_by_line_and_byte(tmp_path: Path, name: str) -> None:
    path = raw(tmp_path, f"{HEADER}\na1,é\n".encode("latin-1"), name=name)
    with pytest.raises(DataError, match=r"line 2: byte 4 of the line \(0xE9\) is not UTF-8; save the file"):
        import_corpus(path)


def test_another_ending_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name, message in (
        ("corpus.xlsx", r'the ending "\.xlsx" is unknown'),
        ("none.csv", "this file is missing"),
        ("folder.csv", "cannot be read"),
    ):
        with pytest.raises(DataError, match=message):
            import_corpus(tmp_path / name)


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return import_corpus(EXAMPLES / "corpus.jsonl")


def test_the_example_queries_say_the_same_in_both_formats(documents: list[Document]) -> None:
    queries = import_queries(EXAMPLES / "human_queries.jsonl", documents, languages=LANGUAGES)
    assert len(queries) == 6
    assert queries == import_queries(EXAMPLES / "human_queries.csv", documents, languages=LANGUAGES)


def test_a_human_query_is_an_attack_in_its_own_language_only(documents: list[Document]) -> None:
    queries = import_queries(EXAMPLES / "human_queries.csv", documents, languages=LANGUAGES)
    query = next(query for query in queries if query.lang == "sw")
    assert (query.doc_id, query.intent, query.paraphrase) == ("mail-0002", "attack", "direct")
    assert (query.query_source, query.only_in_lang, query.author) == ("human", True, "example author")
    assert query.expected_answer is None


QUERY = {"doc_id": "mail-0001", "lang": "en", "paraphrase": "direct", "text": "Who?", "author": "me"}
QUERY_CASES: dict[str, tuple[list[dict[str, object]], str]] = {
    "unknown document": ([{**QUERY, "doc_id": "mail-9"}], r"line 1: no document has the id 'mail-9'"),
    "unknown anchor": ([{**QUERY, "anchor": "Project X"}], r"no document has this anchor \(9 characters\)"),
    "anchor of another": (
        [{**QUERY, "anchor": "project blue kettle"}],
        r"\"anchor\" belongs to 'mail-0002' and \"doc_id\" is 'mail-0001'",
    ),
    "no target in a row": (
        [QUERY, {name: value for name, value in QUERY.items() if name != "doc_id"}],
        r'line 2: the row has neither "doc_id" nor "anchor"',
    ),
    "no target at all": (
        [{name: value for name, value in QUERY.items() if name != "doc_id"}],
        r'the column "doc_id" or "anchor" is missing',
    ),
    "unknown language": (
        [{**QUERY, "lang": "fr"}],
        r'"lang" has an unknown value; allowed: ar, de, en, sw, zh',
    ),
    "unknown paraphrase": ([{**QUERY, "paraphrase": "sumary"}], r'"paraphrase" .* did you mean "summary"'),
    "empty text": ([QUERY, {**QUERY, "text": " "}], r'line 2: "text" is missing or empty'),
    "no author": ([{**QUERY, "author": None}], r'the column "author" is missing'),
    "said twice": ([QUERY, QUERY], r"line 2: the same query stands already on line 1"),
    "unknown key": ([{**QUERY, "txt": "x"}], r"the key 'txt' is unknown; did you mean \"text\""),
}


@pytest.mark.parametrize("case", QUERY_CASES)
def test_a_bad_query_row_is_refused_by_line(tmp_path: Path, documents: list[Document], case: str) -> None:
    rows, message = QUERY_CASES[case]
    with pytest.raises(DataError, match=message):
        import_queries(jsonl(tmp_path, *rows), documents, languages=LANGUAGES)
