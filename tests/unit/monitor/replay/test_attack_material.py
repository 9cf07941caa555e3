"""What attackers ask and how documents are classed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from replay_sample import profiles

from mragaudit.monitor.traffic.material import attack_trials, levels_of
from mragaudit.monitor.traffic.profiles import Profiles
from mragaudit.records.documents import Document
from mragaudit.records.queries import Translation
from mragaudit.records.results import Retrieval


def _translation(query: str, **over: Any) -> Translation:
    given: dict[str, Any] = {
        "trial_id": f"{query}-en",
        "query_id": query,
        "doc_id": "d",
        "intent": "attack",
        "paraphrase": "direct",
        "lang": "en",
        "source_text": "x",
        "text": "x",
        "anchor_kept": True,
        "lang_detected": "en",
        "length_ratio": 1.0,
        "failed": None,
        "not_evaluated": None,
        "query_source": "template",
        "translated": False,
    }
    return Translation(**(given | over))


def _retrieval(query: str, *doc_ids: str) -> Retrieval:
    return Retrieval(trial_id=f"{query}-en", doc_ids=doc_ids, scores=(0.5,) * len(doc_ids), gold_rank=None)


def _document(number: int, topic: str) -> Document:
    return Document(
        doc_id=f"d{number}",
        topic=topic,
        pii_type="name",
        pii_value="Ada",
        anchor=f"Project {number}",
        anchor_type="project",
        level="restricted",
        text=f"Ada runs Project {number}.",
        facts=(),
    )


def test_a_query_written_by_a_person_comes_before_a_template() -> None:
    rows = [_translation("a"), _translation("b", query_source="human")]
    retrieved = {f"{name}-en": _retrieval(name, name) for name in ("a", "b")}
    found = attack_trials(rows, retrieved, disclosed={"b-en": True})
    assert found["en", "d"].documents == ("b",)
    assert found["en", "d"].disclosed is True


def test_benign_queries_and_queries_that_were_never_asked_are_no_attacks() -> None:
    rows = [_translation("a", intent="benign"), _translation("b", not_evaluated="timeout")]
    assert attack_trials(rows, {}, disclosed={}) == {}


def test_levels_follow_the_shares_of_a_topic_and_other_topics_keep_their_own() -> None:
    documents = [_document(n, "mail" if n < 400 else "imported") for n in range(500)]
    rule = {"mail": {"public": 0.75, "confidential": 0.25}}
    levels = levels_of(documents, rule=rule, generator=np.random.default_rng(1))
    dealt = [levels[one.doc_id] for one in documents[:400]]
    assert set(dealt) == {"public", "confidential"}
    assert 80 <= dealt.count("confidential") <= 120  # 100 expected, standard deviation 8.7
    assert {levels[one.doc_id] for one in documents[400:]} == {"restricted"}


def test_shares_that_do_not_add_up_and_an_unknown_disguise_are_refused() -> None:
    given = profiles().model_dump(mode="json")
    with pytest.raises(ValidationError, match=r"levels\.mail add up to 0\.5"):
        Profiles.model_validate_json(_json(given | {"levels": {"mail": {"public": 0.5}}}))
    given["attackers"]["mimicry"]["profile"] = "nobody"
    with pytest.raises(ValidationError, match='profile is "nobody"; benign profiles are'):
        Profiles.model_validate_json(_json(given))


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
