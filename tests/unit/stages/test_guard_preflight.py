"""A guard that does not fit the role, the mode or a variant is refused before the first job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mragaudit.config import load_settings
from mragaudit.errors import ConfigError
from mragaudit.stages.preflight import check_run

CHAT = {"backend": "transformers", "model": "Qwen/Qwen3Guard-Gen-4B", "sha256": None, "rendering": "chat"}
CLASSIFIER = {"backend": "sequence_classifier", "model": "meta-llama/Llama-Prompt-Guard-2-86M", "sha256": None}


def check(folder: Path, *, role: dict[str, Any], **judge: Any) -> bool:
    variants = {"variants": ["english"], "mode": "parse"}
    settings = load_settings({"judge": {**variants, **judge}, "roles": {"judge": role}})
    check_run(settings, results=folder / "results")
    return (folder / "results").is_dir()  # made where a run may start


@pytest.mark.parametrize("guard", ["qwen3guard", "llama_guard_3", "llama_guard_4"])
def test_a_generative_guard_may_judge_with_and_without_documents(guard: str, tmp_path: Path) -> None:
    variants = ["english", "backtranslate", "multilingual", "oracle", "retrieved"]
    assert check(tmp_path, role=CHAT, guard=guard, variants=variants)


@pytest.mark.parametrize("mode", ["parse", "margin"])
def test_prompt_guard_may_judge_by_class_and_by_margin(mode: str, tmp_path: Path) -> None:
    assert check(tmp_path, role=CLASSIFIER, guard="prompt_guard_2", mode=mode)


@pytest.mark.parametrize(
    ("role", "judge", "message"),
    [
        (CHAT, {"guard": "qwen3gard"}, 'did you mean "qwen3guard"?'),
        (CHAT, {"guard": "prompt_guard_2"}, '"transformers", which does not run it; one of: sequence_classifier'),
        (CLASSIFIER, {"guard": "llama_guard_3"}, '"sequence_classifier", which does not run it; one of: llama_cpp'),
        ({**CHAT, "rendering": "completion"}, {"guard": "qwen3guard"}, "so it needs rendering: chat"),
        (CHAT, {"guard": "llama_guard_3", "mode": "margin"}, "so it needs mode: parse"),
        (
            CLASSIFIER,
            {"guard": "prompt_guard_2", "variants": ["english", "oracle", "retrieved"]},
            'holds "oracle", and Llama Prompt Guard 2 has no place for a document; leave out oracle and retrieved',
        ),
        (CHAT, {"guard": "llama_guard_4", "guard_reading": "loose"}, "has no label between safe and unsafe"),
        (CLASSIFIER, {}, '"roles.judge.backend" is "sequence_classifier", which only names the class of a text'),
    ],
)
def test_what_does_not_fit_a_guard_is_named(
    role: dict[str, Any], judge: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        check(tmp_path, role=role, **judge)
    assert message in str(caught.value)


def test_a_classifier_is_refused_for_every_role_but_the_judge(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'"roles\.generator\.backend" is "sequence_classifier", which only names'):
        check_run(load_settings({"roles": {"generator": CLASSIFIER}}), results=tmp_path / "results")
