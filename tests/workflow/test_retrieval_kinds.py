"""Index kinds and methods of retrieval through the stages: files, manifest, messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from pipeline import Pipeline, case_settings
from tiny_embedders import make_bge_m3

from mragaudit.index.rescoring import lexical_score, multi_vector_scores
from mragaudit.protocols import TokenEmbedder
from mragaudit.records.base import read_records
from mragaudit.records.documents import Document, document_key
from mragaudit.records.queries import Translation, translation_key
from mragaudit.records.results import Retrieval, trial_key
from mragaudit.stages.jobs import JobMetrics
from mragaudit.stages.manifest import RecallSummary, read_manifest
from mragaudit.stages.models import load_embedder

pytestmark = pytest.mark.workflow

SHARD = "1-of-1"
DOCUMENTS = 40


def retrieved(folder: Path, **over: Any) -> Pipeline:
    """Return a run up to retrieval, in English and German."""
    folder.mkdir(exist_ok=True)
    small: dict[str, Any] = {"languages": ["en", "de"], "corpus": {"n_documents": DOCUMENTS}}
    run = Pipeline(folder, case_settings(**small, **over))
    run.before("calibrate")
    return run


def index_recall(run: Pipeline) -> RecallSummary | None:
    run.job("manifest")
    return read_manifest(run.files.manifest).index_recall


def rows(run: Pipeline) -> dict[str, Retrieval]:
    path = run.files.root / "retrieval" / f"{SHARD}.jsonl"
    return {row.trial_id: row for row in read_records(path, Retrieval, key=trial_key)}


@pytest.mark.embedded
def test_a_flat_index_has_no_recall_to_state(tmp_path: Path) -> None:
    assert index_recall(retrieved(tmp_path)) is None


@pytest.mark.embedded
@pytest.mark.parametrize(
    "index", [{"kind": "hnsw", "m": 2, "ef_construction": 2, "ef_search": 1}, {"kind": "ivf_flat", "nlist": 1}]
)
def test_the_manifest_states_what_an_approximate_index_found_of_the_exact_best(
    tmp_path: Path, index: dict[str, Any]
) -> None:
    exact = rows(retrieved(tmp_path / "exact", retrieve={"k": 3}))
    run = retrieved(tmp_path / "near", retrieve={"k": 3, "index": {**index, "recall_queries": 1000}})
    near = rows(run)
    shares = [len(set(near[name].doc_ids) & set(exact[name].doc_ids)) / 3 for name in near]
    found = index_recall(run)
    assert found is not None
    assert (found.kind, found.k, found.n_queries) == (index["kind"], 3, len(near))
    assert found.recall == pytest.approx(np.mean(shares), abs=1e-6)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.recall <= found.high
    assert (found.interval, found.not_evaluated) == ("wilson_two_sided", None)


@pytest.mark.embedded
def test_no_more_queries_are_compared_than_asked_for_and_none_is_not_evaluated(tmp_path: Path) -> None:
    some = index_recall(retrieved(tmp_path / "some", retrieve={"index": {"kind": "hnsw", "recall_queries": 7}}))
    none = index_recall(retrieved(tmp_path / "none", retrieve={"index": {"kind": "hnsw", "recall_queries": 0}}))
    assert some is not None
    assert some.n_queries == 7
    assert none is not None
    assert (none.n_queries, none.recall, none.low, none.high, none.interval) == (0, None, None, None, "")
    assert none.not_evaluated == "no query was compared with an exact search"


@pytest.mark.embedded
def test_too_few_documents_for_an_inverted_file_stop_the_run_with_what_would_be_right(tmp_path: Path) -> None:
    settings = case_settings(retrieve={"index": {"kind": "ivf_flat"}})
    run = Pipeline(tmp_path, settings)
    with pytest.raises(SystemExit):
        run.before("translate")
    assert "the corpus has 5 documents; its lists are trained on at least 39 documents each, so use flat" in run.log(
        "index"
    )


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bge_m3(tmp_path_factory.mktemp("models") / "tiny-m3")


def bge_m3(checkpoint: Path, **options: Any) -> dict[str, Any]:
    return {"embedder": {"backend": "bge_m3", "model": str(checkpoint), "options": {"batch_size": 4, **options}}}


TOKEN_EMBEDDERS = [
    pytest.param("hashing", marks=pytest.mark.embedded),
    pytest.param("bge_m3", marks=pytest.mark.torch_embedders),
]


@pytest.fixture(params=TOKEN_EMBEDDERS)
def roles(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the embedder's role, of every kind that scores by tokens."""
    if request.param == "hashing":
        return {"embedder": {"backend": "hashing", "model": "trigrams"}}
    return bge_m3(request.getfixturevalue("checkpoint"))


@pytest.mark.parametrize("method", ["sparse", "multi_vector", "hybrid"])
def test_a_method_ranks_documents_by_its_own_score(tmp_path: Path, roles: dict[str, Any], method: str) -> None:
    """Every score is computed again from the texts, over all documents."""
    retrieve = {"k": 3, "method": method, "candidates": None, "weights": {"dense": 1.0, "sparse": 2.0}}
    run = retrieved(tmp_path, roles=roles, retrieve=retrieve)
    documents = read_records(run.files.documents, Document, key=document_key)
    trials = read_records(run.files.root / "translations" / f"{SHARD}.jsonl", Translation, key=translation_key)
    asked = [row for row in trials if row.intent != "control"][:5]
    embedder = load_embedder(run.settings.roles.embedder, threads=1)
    assert isinstance(embedder, TokenEmbedder)
    texts = [row.text for row in documents]
    signals = embedder.document_signals(texts)
    dense = embedder.embed_queries([row.text for row in asked]) @ embedder.embed_documents(texts).T
    for row, query, inner in zip(asked, embedder.query_signals([row.text for row in asked]), dense, strict=True):
        sparse = np.array([lexical_score(query.weights, one.weights) for one in signals])
        multi = np.array(multi_vector_scores(query.vectors, [one.vectors for one in signals]))
        scores = {"sparse": sparse, "multi_vector": multi, "hybrid": (inner + 2 * sparse + multi) / 4}[method]
        expected = np.sort(scores)[::-1][:3]
        found = rows(run)[row.trial_id]
        assert found.scores == pytest.approx(expected, abs=2e-6)
        chosen = [scores[[one.doc_id for one in documents].index(name)] for name in found.doc_ids]
        assert chosen == pytest.approx(expected, abs=2e-6)


def test_only_dense_candidates_are_ranked_anew(tmp_path: Path, roles: dict[str, Any]) -> None:
    dense = rows(retrieved(tmp_path / "dense", roles=roles, retrieve={"k": 3}))
    few = {"k": 3, "method": "multi_vector", "candidates": 3}
    anew = rows(retrieved(tmp_path / "anew", roles=roles, retrieve=few))
    assert {name: set(row.doc_ids) for name, row in anew.items()} == {
        name: set(row.doc_ids) for name, row in dense.items()
    }
    assert any(anew[name].doc_ids != dense[name].doc_ids for name in dense)


@pytest.mark.torch_embedders
def test_an_index_of_another_batch_size_is_refused(tmp_path: Path, checkpoint: Path) -> None:
    run = retrieved(tmp_path, roles=bge_m3(checkpoint))
    metrics = msgspec.json.decode((run.files.job_metrics("retrieve", SHARD)).read_bytes(), type=JobMetrics)
    assert metrics.models["embedder"].rendering == "batch 4, max 8192 tokens, fp32"
    other = Pipeline(tmp_path, case_settings(languages=["en", "de"], roles=bge_m3(checkpoint, batch_size=2)))
    with pytest.raises(SystemExit):
        other.job("retrieve", SHARD)
    log = other.log(f"retrieve.{SHARD}")
    assert "batch 4, max 8192 tokens, fp32), the queries would be embedded by tiny-m3" in log
    assert "run the stage `index` again" in log
