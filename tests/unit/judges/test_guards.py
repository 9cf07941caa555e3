"""Guard models: their files, what their replies mean, and where their use is off-label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mragaudit.config import load_settings
from mragaudit.errors import ConfigError, DataError
from mragaudit.judges.guards import Guard, guard_label, guard_verdict, load_guard
from mragaudit.protocols import Completion, Message
from mragaudit.stages.judging import JudgeItem, ask, templates_for

FOLDER = Path(__file__).parents[3] / "resources" / "guards"
GUARDS = {path.stem: load_guard(FOLDER, path.stem) for path in sorted(FOLDER.glob("*.yaml"))}
REPLIES = yaml.safe_load(Path(__file__).with_name("guard_replies.yaml").read_text(encoding="utf-8"))
CASES = [pytest.param(name, reply, id=f"{name} {reply['raw'][:30]!r}") for name in REPLIES for reply in REPLIES[name]]
LANGUAGES = ("en", "zh", "de", "ar", "sw")


def test_every_guard_has_replies_here() -> None:
    assert sorted(REPLIES) == sorted(GUARDS)
    assert min(len(replies) for replies in REPLIES.values()) >= 12


@pytest.mark.parametrize(("name", "reply"), CASES)
def test_a_reply_means_what_its_guards_documentation_says(name: str, reply: dict[str, str]) -> None:
    assert guard_verdict(GUARDS[name], reply["raw"], reading="strict") == reply["verdict"]
    assert guard_verdict(GUARDS[name], reply["raw"], reading="loose") == reply.get("loose", reply["verdict"])


@pytest.mark.parametrize("name", GUARDS)
@settings(deadline=None, max_examples=60)  # the machine may be busy
@given(raw=st.text() | st.lists(st.sampled_from(["safe", "un", "Safety:", "\n", " ", "S7", "None", ","])).map("".join))
def test_a_reply_without_a_label_is_neither_allowed_nor_blocked(name: str, raw: str) -> None:
    said = guard_verdict(GUARDS[name], raw, reading="strict")
    assert (said == "UNPARSED") == (guard_label(GUARDS[name], raw) is None)
    if not any(label.casefold() in raw.casefold() for label in GUARDS[name].labels) and raw.isascii():
        assert said == "UNPARSED"


@pytest.mark.parametrize(
    ("name", "claimed"),
    [
        ("qwen3guard", LANGUAGES),
        ("llama_guard_3", ("en", "de")),
        ("llama_guard_4", ("en", "de")),
        ("prompt_guard_2", ("en", "de")),
    ],
)
def test_the_languages_that_a_guard_claims_are_those_of_its_card(name: str, claimed: tuple[str, ...]) -> None:
    assert tuple(lang for lang in LANGUAGES if GUARDS[name].claims(lang)) == claimed


def test_a_region_is_not_another_language() -> None:
    assert GUARDS["llama_guard_3"].claims("pt-BR")
    assert not GUARDS["llama_guard_3"].claims("sw-KE")


@pytest.mark.parametrize(
    ("name", "lang", "variant", "reasons"),
    [
        ("llama_guard_3", "sw", "english", ("language",)),
        ("llama_guard_3", "sw", "retrieved", ("language",)),
        ("llama_guard_3", "sw", "backtranslate", ()),
        ("llama_guard_3", "de", "english", ()),
        ("qwen3guard", "sw", "english", ()),
        ("prompt_guard_2", "en", "english", ("purpose",)),
        ("prompt_guard_2", "sw", "english", ("language", "purpose")),
        ("prompt_guard_2", "sw", "backtranslate", ("purpose",)),
    ],
)
def test_use_outside_of_claimed_languages_or_purpose_is_off_label(
    name: str, lang: str, variant: str, reasons: tuple[str, ...]
) -> None:
    assert GUARDS[name].off_label(lang, variant=variant) == reasons


def test_a_guard_is_shown_the_query_alone_and_no_text_of_ours() -> None:
    prompt = GUARDS["qwen3guard"].templates().alone.prompt(query="Who is {it}?")
    assert (prompt.messages, prompt.shared) == ((Message("user", "Who is {it}?"),), 0)


def test_a_document_stands_before_the_query_in_the_same_turn() -> None:
    prompt = GUARDS["llama_guard_3"].templates().with_context.prompt(query="Who?", context="A note.")
    assert prompt.messages == (Message("user", "A note.\n\nWho?"),)


def test_the_options_of_a_margin_are_the_blocking_label_and_the_passing_one() -> None:
    assert GUARDS["prompt_guard_2"].options == ("MALICIOUS", "BENIGN")
    assert [name for name, guard in GUARDS.items() if "margin" in guard.modes] == ["prompt_guard_2"]


def test_an_unknown_guard_is_told_with_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match=r'config key "judge\.guard": .*did you mean "llama_guard_3"\?'):
        load_guard(FOLDER, "llama_guard3")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": {"safe": "ALLOW"}}, '"labels" needs a label for BLOCK and one for ALLOW'),
        ({"labels": {"safe": "ALLOW", "unsafe": "UNPARSED"}}, "Invalid enum value 'UNPARSED'"),
        ({"loose": {"maybe": "ALLOW"}}, '"loose" reads maybe, which is none of "labels"'),
        ({"context_turn": "{context} {question}"}, "needs exactly"),
        ({"form": "json"}, "Invalid enum value 'json'"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"languages": None}, "Expected `array`"),
    ],
)
def test_a_file_that_does_not_fit_is_named_with_what_is_wrong(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    content = yaml.safe_load((FOLDER / "llama_guard_3.yaml").read_text(encoding="utf-8"))
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**content, **change}), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load_guard(tmp_path, "mine")
    assert str(tmp_path / "mine.yaml") in str(caught.value)
    assert message in str(caught.value)


def test_a_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("labels: {", encoding="utf-8")
    with pytest.raises(DataError, match=r"mine\.yaml: not readable as UTF-8 YAML"):
        load_guard(tmp_path, "mine")


def test_a_guard_of_ones_own_is_a_file(tmp_path: Path) -> None:
    content = yaml.safe_load((FOLDER / "llama_guard_3.yaml").read_text(encoding="utf-8"))
    own = {**content, "labels": {"ok": "ALLOW", "no": "BLOCK"}, "categories": []}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    guard: Guard = load_guard(tmp_path, "mine")
    assert [guard_verdict(guard, raw, reading="strict") for raw in ("ok", "no", "safe")] == [
        "ALLOW",
        "BLOCK",
        "UNPARSED",
    ]


class _Classifier:
    """Stands for the way to a classifier that always names the same class."""

    def __init__(self, name: str) -> None:
        self._name = name

    def generate(self, requests: Sequence[object], *, trials: Sequence[str]) -> list[Completion]:
        assert len(requests) == len(trials)
        return [Completion(text=self._name, finish_reason="stop", prompt_tokens=1, completion_tokens=0)] * len(requests)


def test_a_class_that_the_guard_does_not_have_is_no_unparsed_reply_but_a_wrong_config() -> None:
    role = {"backend": "sequence_classifier", "model": "m", "sha256": None}
    asked = load_settings({"judge": {"guard": "prompt_guard_2", "mode": "parse"}, "roles": {"judge": role}})
    item = JudgeItem(trial_id="t", variant="english", lang="en", text="who?", context=None, missing=None)
    templates = templates_for(["en"], asked)
    assert len(ask([item], templates, caller=_Classifier("benign"), settings=asked)) == 1  # type: ignore[arg-type]
    with pytest.raises(
        ConfigError, match=r'options.labels": the model names the class "LABEL_0", and those of .* are B'
    ):
        ask([item], templates, caller=_Classifier("LABEL_0"), settings=asked)  # type: ignore[arg-type]
