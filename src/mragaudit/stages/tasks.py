"""Translation tasks: what the translators are asked, as data beside the messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from mragaudit.corpus.languages import load_language
from mragaudit.protocols import Prompt, TranslationTask
from mragaudit.resources import resource_folder


def flores_codes(resources: str, languages: Iterable[str]) -> dict[str, str]:
    """Return the FLORES-200 code by language tag; a language whose file gives none is left out."""
    folder = resource_folder(resources) / "languages"
    found = {lang: load_language(folder, lang).flores for lang in sorted(set(languages))}
    return {lang: code for lang, code in found.items() if code is not None}


def with_task(prompt: Prompt, text: str, *, pair: tuple[str, str], codes: Mapping[str, str]) -> Prompt:
    """Return the prompt with its task as data; as it was where a language of the pair has no code.

    `pair` holds the tags of the text's language and of the one asked for.
    """
    source, target = (codes.get(lang) for lang in pair)
    if source is None or target is None:
        return prompt
    return msgspec.structs.replace(prompt, task=TranslationTask(text=text, source=source, target=target))
