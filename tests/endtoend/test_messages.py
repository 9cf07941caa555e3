"""What a person reads when the config or a file is wrong: one line that names key or file, and no traceback."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hostile_corpus import write_hostile
from run_stages import CASES, EXAMPLES, REPOSITORY, scripted_settings

from mragaudit.errors import MragauditError
from mragaudit.records.base import read_records
from mragaudit.records.documents import Document, document_key
from mragaudit.stages.preflight import check_run

IMPORTED = {"source": str(EXAMPLES / "corpus.jsonl")}


def snakemake(folder: Path, *arguments: str, config: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """Start Snakemake in an empty folder with the default config, the scripted case and a config of one's own."""
    shutil.copy(REPOSITORY / "config.yaml", folder)
    mine = folder / "mine.yaml"
    mine.write_text(yaml.safe_dump(dict(config)), encoding="utf-8")
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "-s", str(REPOSITORY / "Snakefile")]
    command += ["--configfile", str(CASES / "scripted" / "config.yaml"), str(mine)]
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def message_of(tmp_path: Path, **over: Any) -> str:
    """Return the error of a config, which has to be one line and to leave no results behind."""
    with pytest.raises(MragauditError) as caught:
        check_run(scripted_settings(**over), results=tmp_path / "results")
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert not (tmp_path / "results").exists()
    return message


def test_an_unknown_key_is_named_with_its_nearest(tmp_path: Path) -> None:
    message = message_of(tmp_path, judge={"varaints": ["english"]})
    assert message == 'config key "judge.varaints" is unknown; did you mean "variants"?'


def test_a_value_of_the_wrong_type_is_named_with_what_would_be_right(tmp_path: Path) -> None:
    message = message_of(tmp_path, retrieve={"k": "five"})
    assert message == "config key \"retrieve.k\" is 'five'; it should be a valid integer"


def test_a_language_without_templates_is_named_by_its_missing_file(tmp_path: Path) -> None:
    message = message_of(tmp_path, languages=["en", "fr"])
    missing = Path("resources", "prompts", "generator", "fr.yaml")
    assert message.endswith(f"{missing}: this prompt file is missing; add it, or take the language out of `languages`")


@pytest.mark.parametrize(
    ("role", "given", "said"),
    [
        (
            "judge",
            {"backend": "vllm", "model": "x/y", "options": {"quantization": "awq"}},
            'llm vllm: "quantization" is no option of it; did you mean "quantisation"?',
        ),
        (
            "generator",
            {"backend": "transformers", "model": "x/y", "options": {"batch_size": "8"}},
            "llm transformers.batch_size: Expected `int`, got `str`",
        ),
        ("translator", {"backend": "openai_http", "model": "m"}, 'llm openai_http: the option "base_url" is missing'),
        (
            "embedder",
            {"backend": "bge_m3", "model": "x/y", "options": {"batchsize": 8}},
            'embedder bge_m3: "batchsize" is no option of it; did you mean "batch_size"?',
        ),
    ],
    ids=["unknown", "type", "missing", "embedder"],
)
def test_wrong_options_of_any_model_are_named_before_the_first_job(
    role: str, given: dict[str, Any], said: str, tmp_path: Path
) -> None:
    sha256 = {} if role == "embedder" else {"sha256": None}
    message = message_of(tmp_path, roles={role: {**given, **sha256}})
    assert message.startswith(f'config key "roles.{role}.options": ')
    assert said in message


def test_zero_synthetic_documents_are_refused(tmp_path: Path) -> None:
    message = message_of(tmp_path, corpus={"n_documents": 0})
    assert message == 'config key "corpus.n_documents" is 0; it should be greater than or equal to 5'


def test_a_corpus_file_without_a_document_is_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n", encoding="utf-8")
    message = message_of(tmp_path, corpus={"source": str(empty)})
    assert message == f"{empty}: the file holds no row; it needs at least one"


def test_a_corpus_file_that_is_not_there_is_named_by_key_and_path(tmp_path: Path) -> None:
    message = message_of(tmp_path, corpus={"source": "mine/corpus.jsonl"})
    assert message == 'config key "corpus.source" is "mine/corpus.jsonl": no such file'


def test_more_documents_a_trial_than_an_imported_corpus_has_are_refused(tmp_path: Path) -> None:
    message = message_of(tmp_path, corpus=IMPORTED, retrieve={"k": 7})
    assert message == (
        'config key "retrieve.k" is 7 and the corpus has 6 documents; k may be at most the number of documents'
    )


def test_a_bad_row_of_an_imported_corpus_is_named_before_any_stage_runs(tmp_path: Path) -> None:
    source = tmp_path / "corpus.csv"
    lines = (EXAMPLES / "corpus.csv").read_text(encoding="utf-8").replace("mail-0002,", "mail-0001,")
    source.write_text(lines, encoding="utf-8")
    message = message_of(tmp_path, corpus={"source": str(source)})
    assert message == f"{source}, line 3: the id 'mail-0001' stands already on line 2; ids are unique"


def test_a_bad_row_of_queries_by_people_is_named_before_any_stage_runs(tmp_path: Path) -> None:
    source = tmp_path / "queries.jsonl"
    source.write_text(
        '{"doc_id": "mail-9999", "lang": "en", "paraphrase": "direct", "text": "who?", "author": "me"}\n',
        encoding="utf-8",
    )
    message = message_of(tmp_path, corpus=IMPORTED, queries={"source": str(source)})
    assert message.startswith(f"{source}, line 1: no document has the id 'mail-9999'")


@pytest.mark.workflow
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"judge": {"varaints": ["english"]}}, 'config key "judge.varaints" is unknown; did you mean "variants"?'),
        ({"corpus": IMPORTED, "retrieve": {"k": 7}}, 'config key "retrieve.k" is 7 and the corpus has 6 documents'),
    ],
    ids=["unknown key", "k too large"],
)
def test_snakemake_prints_the_message_and_no_traceback(config: dict[str, Any], message: str, tmp_path: Path) -> None:
    result = snakemake(tmp_path, "--dry-run", config=config)
    assert result.returncode == 1
    said = result.stdout + result.stderr
    assert sum(message in line for line in said.splitlines()) == 1
    assert "Traceback" not in said
    assert not (tmp_path / "results").exists()


@pytest.mark.workflow
@pytest.mark.slow
def test_snakemake_refuses_a_key_that_stands_twice_in_a_config_file(tmp_path: Path) -> None:
    twice = tmp_path / "twice.yaml"
    twice.write_text("seed: 1\nseed: 2\n", encoding="utf-8")
    result = snakemake(tmp_path, str(twice), "--dry-run", config={})
    assert result.returncode == 1
    message = f'{twice}, line 2: the key "seed" stands there already on line 1; keep one'
    assert message in (result.stdout + result.stderr).splitlines()


@pytest.mark.workflow
@pytest.mark.slow
def test_a_key_that_is_missing_here_is_said_before_the_first_job_of_what_needs_it(tmp_path: Path) -> None:
    options = {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "NO_SUCH_KEY"}
    judge = {"backend": "openai_http", "model": "m", "sha256": None, "options": options}
    config = {"run": "early", "roles": {"judge": judge}, "languages": ["en"]}
    documents = snakemake(tmp_path, "--", "results/early/corpus/documents.jsonl", config=config)
    thresholds = snakemake(tmp_path, "--", "results/early/judgements/thresholds.json", config=config)
    assert (documents.returncode, thresholds.returncode) == (0, 1)
    assert "NO_SUCH_KEY" not in documents.stderr
    assert thresholds.stderr.index("warning: roles.judge: ") < thresholds.stderr.index("Finished jobid")


@pytest.mark.workflow
@pytest.mark.slow
def test_snakemake_imports_a_corpus_from_a_file_with_a_hostile_name_into_a_closed_folder(tmp_path: Path) -> None:
    corpus, _ = write_hostile(tmp_path)
    config = {"run": "hostile", "corpus": {"source": str(corpus)}, "languages": ["en"], "retrieve": {"k": 2}}
    target = Path("results", "hostile", "corpus", "documents.jsonl")
    result = snakemake(tmp_path, "--", str(target), config=config)
    assert result.returncode == 0, result.stderr
    assert len(read_records(tmp_path / target, Document, key=document_key)) == 5
    assert stat.S_IMODE((tmp_path / "results" / "hostile").stat().st_mode) == 0o700
