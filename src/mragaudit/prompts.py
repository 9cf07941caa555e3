"""Prompt templates: a file per role and language, so that a language is data.

A template becomes messages; a backend turns messages into the input of its model. All messages before the last
turn are the same for every call from one template, which is where backends may reuse a prefix.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from mragaudit.errors import ConfigError, DataError
from mragaudit.plainyaml import read_plain
from mragaudit.protocols import Message, Prompt

Role = Literal["translator", "back_translator", "judge", "generator"]

CONTEXT = "context"
"""Field that holds documents; what stands up to its end is reused between queries."""

FIELDS: dict[str, frozenset[str]] = {
    "translator": frozenset({"source"}),
    "back_translator": frozenset({"source"}),
    "judge": frozenset({"query"}),
    "judge_with_context": frozenset({"query", "context"}),
    "generator": frozenset({"question", "context"}),
}


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """System text, the shape of a user turn, and worked examples of it."""

    system: str
    """Empty for a model that gets no system message."""
    turn: str
    """User turn with its placeholders, in `str.format` syntax."""
    shots: tuple[dict[str, str], ...]
    """Worked examples: the turn's fields, and `answer`."""
    stop: tuple[str, ...]
    """Strings that end an answer."""

    def prompt(self, **fields: str) -> Prompt:
        """Return the messages of one call; the fields are inserted as text and never read as a template."""
        shared = [Message("system", self.system.strip())] if self.system else []
        for shot in self.shots:
            given = {name: value for name, value in shot.items() if name != "answer"}
            shared.append(Message("user", self.turn.format(**given)))
            shared.append(Message("assistant", shot["answer"]))
        last = Message("user", self.turn.format(**fields))
        return Prompt(messages=(*shared, last), shared=len(shared), head=self._head(fields.get(CONTEXT, "")))

    def _head(self, context: str) -> int:
        """Return how many characters of the last turn end with the context; 0 when a query comes before it."""
        before, found, _ = self.turn.partition(f"{{{CONTEXT}}}")
        if not found or "{" in before:
            return 0
        return len(before) + len(context)

    def few_shot_text(self) -> str:
        """Return all text that every prompt of this template shows the model beside the last turn."""
        return "\n".join(value for shot in self.shots for value in shot.values())


class JudgeTemplates(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's two templates in one language: the query alone, and the query with a document."""

    alone: Template
    with_context: Template


class GeneratorTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """The generator's template in one language and the shape of one retrieved document."""

    template: Template
    document: str
    """Shape of a document, with `{text}`."""

    def context(self, texts: Sequence[str]) -> str:
        """Return the context block of the given documents, in this order."""
        return "\n".join(self.document.format(text=" ".join(text.split())) for text in texts)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    system: str
    turn: str
    shots: list[dict[str, Any]]
    stop: list[str] = []
    document: str | None = None
    context_system: str | None = None
    context_turn: str | None = None
    context_shots: list[dict[str, Any]] = []


def prompt_path(folder: Path, role: Role, lang: str) -> Path:
    """Return where a role's template in a language lives below the folder of prompts."""
    return folder / role / f"{lang}.yaml"


def load_template(folder: Path, role: Role, lang: str) -> Template:
    """Return the template of a translator or back-translator.

    Raises ConfigError when the file is absent, DataError when its content does not fit.
    """
    path = prompt_path(folder, role, lang)
    return _template(_read(path), FIELDS[role], path)


def load_judge(folder: Path, lang: str) -> JudgeTemplates:
    """Return the judge's templates in a language; errors as in load_template."""
    path = prompt_path(folder, "judge", lang)
    file = _read(path)
    if file.context_turn is None:
        raise DataError(
            f'{path}: "context_turn" is missing; it shows the judge a document, with {{context}} and {{query}}'
        )
    context = msgspec.structs.replace(
        file, system=file.context_system or file.system, turn=file.context_turn, shots=file.context_shots
    )
    return JudgeTemplates(
        alone=_template(file, FIELDS["judge"], path),
        with_context=_template(context, FIELDS["judge_with_context"], path),
    )


def load_generator(folder: Path, lang: str) -> GeneratorTemplate:
    """Return the generator's template in a language; errors as in load_template."""
    path = prompt_path(folder, "generator", lang)
    file = _read(path)
    document = file.document
    if document is None:
        raise DataError(f'{path}: "document" is missing; it is the shape of a retrieved document, with {{text}}')
    _require_fields(document, frozenset({"text"}), f'{path}: "document"')
    shots = [_join_documents(shot, document) for shot in file.shots]
    file = msgspec.structs.replace(file, shots=shots)
    return GeneratorTemplate(template=_template(file, FIELDS["generator"], path), document=document)


def _join_documents(shot: Mapping[str, Any], document: str) -> dict[str, Any]:
    """Turn the `documents` of an example into the `context` that a real call has."""
    rest = {name: value for name, value in shot.items() if name != "documents"}
    texts = shot.get("documents", [])
    return {**rest, "context": "\n".join(document.format(text=" ".join(str(text).split())) for text in texts)}


def _read(path: Path) -> _File:
    try:
        content = read_plain(path)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: this prompt file is missing; add it, or take the language out of `languages`"
        ) from error
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not readable as UTF-8 YAML: {error}") from error
    try:
        return msgspec.convert(content, _File)
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {error}") from error


def _template(file: _File, fields: frozenset[str], path: Path) -> Template:
    _require_fields(file.turn, fields, f"{path}: a turn")
    for number, shot in enumerate(file.shots, start=1):
        if set(shot) != fields | {"answer"}:
            raise DataError(f"{path}: example {number} has {sorted(shot)}; it needs {sorted(fields | {'answer'})}")
    return Template(
        system=file.system,
        turn=file.turn.rstrip(),
        shots=tuple({name: str(value) for name, value in shot.items()} for shot in file.shots),
        stop=tuple(file.stop),
    )


def _require_fields(text: str, fields: frozenset[str], where: str) -> None:
    try:
        found = {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise DataError(f"{where}: {error}; write braces that are text as {{{{ and }}}}") from error
    if found != fields:
        raise DataError(f"{where} has the placeholders {sorted(found)}; it needs exactly {sorted(fields)}")
