from __future__ import annotations

import shutil
from pathlib import Path

from mragaudit.protocols import Message, Prompt, TranslationTask
from mragaudit.stages.tasks import flores_codes, with_task

REPOSITORY = Path(__file__).parents[3]
PROMPT = Prompt(messages=(Message("user", "English: Hello\nGerman:"),), shared=0)


def test_a_language_without_a_code_is_left_out(tmp_path: Path) -> None:
    for folder in (REPOSITORY / "resources", REPOSITORY / "tests/cases/french"):
        shutil.copytree(folder / "languages", tmp_path / "languages", dirs_exist_ok=True)
    assert flores_codes(str(tmp_path), ["de", "fr", "de"]) == {"de": "deu_Latn"}


def test_a_task_carries_the_text_and_both_codes_beside_the_messages() -> None:
    made = with_task(PROMPT, "Hello", pair=("en", "de"), codes={"en": "eng_Latn", "de": "deu_Latn"})
    assert made.task == TranslationTask(text="Hello", source="eng_Latn", target="deu_Latn")
    assert made.messages == PROMPT.messages


def test_without_a_code_on_either_side_there_is_no_task() -> None:
    assert with_task(PROMPT, "Hello", pair=("en", "fr"), codes={"en": "eng_Latn"}) == PROMPT
    assert with_task(PROMPT, "Hello", pair=("fr", "en"), codes={"en": "eng_Latn"}) == PROMPT
