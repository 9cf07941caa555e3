"""Tables as CSV: what stands in a cell, and that it comes back."""

from __future__ import annotations

import pandas as pd
import pytest

from mragaudit.config import load_settings, settings_from_slice, settings_slice
from mragaudit.errors import DataError
from mragaudit.paths import TABLES
from mragaudit.records.base import write_records
from mragaudit.records.trials import Trial, trial_row_key
from mragaudit.stages import aggregate
from mragaudit.tables.frames import frame


def attack(number, lang="en", *, leak=True):
    return Trial(
        trial_id=f"q{number}-{lang}",
        query_id=f"q{number}",
        doc_id=f"d{number}",
        lang=lang,
        intent="attack",
        paraphrase="direct",
        query_source="template",
        pii_type="name",
        gold_rank=1,
        leak_published=leak,
        leak_verbatim=leak,
        leak_normalised=leak,
        leak_partial_share=1.0,
        echoed=False,
        fired={"regex_ascii": False},
        verdict={"english": "ALLOW"},
        margin={"english": None},
        output_only_leak={},
        combined_leak={},
        answered_correctly=None,
        translated=False,
        never_asked=False,
        translation_failed=None,
        anchor_kept=True,
        language_ok=True,
        length_ratio=1.0,
        round_trip_similarity=None,
        expected_verdict=None,
        control_split=None,
        not_evaluated=None,
    )


@pytest.fixture
def write_tables(tmp_path):
    """Write trials and their tables; return the folder of tables."""
    whole = load_settings(
        {
            "languages": ["en", "de"],
            "judge": {"variants": ["english"]},
            "filter": {"variants": ["regex_ascii"]},
            "statistics": {"resamples": 100},
        }
    )
    settings = settings_from_slice(settings_slice(whole, "aggregate"))

    def write(trials):
        write_records(tmp_path / "trials.jsonl", trials, key=trial_row_key)
        tables = {name: tmp_path / "tables" / f"{name}.csv" for name in TABLES}
        (tmp_path / "noise.jsonl").touch()
        aggregate.run(
            trials=tmp_path / "trials.jsonl", noise=tmp_path / "noise.jsonl", tables=tables, settings=settings
        )
        return tmp_path / "tables"

    return write


def test_a_table_reads_line_by_line_as_written_by_hand(write_tables):
    folder = write_tables([attack(number, leak=number < 2) for number in range(3)])
    lines = (folder / "f1_output_only.csv").read_text(encoding="utf-8").split("\n")
    assert lines[0] == (
        "lang,pii_group,filter_variant,n_documents,n_leaked,n_not_evaluated,rate,ci_low,ci_high,ci_method,"
        "n_leaked_published,query_source"
    )
    assert lines[1] == "en,unstructured,none,3,2,0,0.666666667,0,1,bootstrap_document,2,template"
    assert lines[-2] == "de,all,regex_ascii,0,0,0,,,,,0,template"
    assert lines[-1] == ""


def test_none_is_a_word_and_an_empty_cell_a_missing_value_when_read_back(write_tables):
    table = aggregate.read_table(write_tables([attack(1)]) / "f1_output_only.csv")
    assert set(table["filter_variant"]) == {"none", "regex_ascii"}
    german = table[table["lang"] == "de"]
    assert german[["rate", "ci_low", "ci_high", "ci_method"]].isna().all(axis=None)
    assert table["n_documents"].dtype == "int64"


def test_what_is_read_back_and_written_again_is_the_same(write_tables):
    folder = write_tables([attack(number, lang) for number in range(3) for lang in ("en", "de")])
    for name in TABLES:
        text = (folder / f"{name}.csv").read_text(encoding="utf-8")
        assert aggregate.to_csv(aggregate.read_table(folder / f"{name}.csv")) == text, name


def test_the_same_trials_give_the_same_bytes(write_tables):
    trials = [attack(number, lang, leak=number % 3 > 0) for number in range(7) for lang in ("en", "de")]
    first = {path.name: path.read_bytes() for path in write_tables(trials).iterdir()}
    second = {path.name: path.read_bytes() for path in write_tables(trials[::-1]).iterdir()}
    assert len(first) == len(TABLES)
    assert first == second


def test_whole_numbers_stay_whole_beside_empty_cells():
    table = frame(
        [{"lang": "en", "n": 3, "n_failed": 1, "rate": 0.5}, {"lang": "de"}], ["lang", "n", "n_failed", "rate"]
    )
    assert aggregate.to_csv(table) == "lang,n,n_failed,rate\nen,3,1,0.5\nde,,,\n"


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@sum", "\tx"])
def test_text_that_a_spreadsheet_would_evaluate_gets_an_apostrophe(text):
    assert aggregate.to_csv(pd.DataFrame({"lang": [text, None, "plain"]})) == f'lang\n\'{text}\n""\nplain\n'


def test_negative_numbers_are_no_formulas():
    assert aggregate.to_csv(pd.DataFrame({"difference": [-0.125]})) == "difference\n-0.125\n"


def test_a_bad_line_is_named_by_file_and_number(write_tables, tmp_path):
    write_tables([attack(1)])
    path = tmp_path / "trials.jsonl"
    path.write_bytes(path.read_bytes() + b'{"record":"trial/1"}\n')
    with pytest.raises(DataError, match=r"trials\.jsonl, line 2: "):
        aggregate.run(trials=path, noise=tmp_path / "noise.jsonl", tables={}, settings=load_settings({}))
