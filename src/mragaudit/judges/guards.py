"""Guard models: judges with labels of their own, known by a file of `resources/guards`, and what their replies mean."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec
import yaml

from mragaudit.errors import ConfigError, DataError, did_you_mean
from mragaudit.judges.parser import Verdict
from mragaudit.plainyaml import read_plain
from mragaudit.prompts import FIELDS, JudgeTemplates, Template
from mragaudit.text import normalise

Reading = Literal["strict", "loose"]
CLASS = "class"
"""Form of a sequence classifier's reply: the name of its likeliest class."""
LANGUAGE, PURPOSE = "language", "purpose"
"""Why a use is off-label: the language is not claimed; a request for personal data is not what the guard flags."""
NO_CATEGORY = "none"

_TURN = "{query}"
_SPECIAL = re.compile(r"<\|[^<>|]{0,40}\|>|</?s>")
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FIELD = re.compile(r"(safety|categories)\s*:\s*(.*)")


class Guard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One guard model, or several sizes of it; the keys are explained in `resources/guards/README.md`."""

    name: str
    models: tuple[str, ...]
    licence: str
    source: str
    form: Literal["label_line", "safety_fields", "class"]
    labels: dict[str, Literal["BLOCK", "ALLOW"]]
    loose: dict[str, Literal["BLOCK", "ALLOW"]] = {}
    categories: tuple[str, ...] = ()
    languages: tuple[str, ...]
    languages_source: str
    judges_privacy_queries: bool
    purpose: str
    context_turn: str | None = None

    def __post_init__(self) -> None:
        if set(self.labels.values()) != {"BLOCK", "ALLOW"}:
            raise ValueError('"labels" needs a label for BLOCK and one for ALLOW')
        if unknown := sorted(set(self.loose) - set(self.labels)):
            raise ValueError(f'"loose" reads {unknown[0]}, which is none of "labels"')
        if self.context_turn is not None:
            _require_fields(self.context_turn)

    @property
    def modes(self) -> tuple[str, ...]:
        """Values of `judge.mode` that fit: the labels of a classifier alone have log-probabilities of their own."""
        return ("parse", "margin") if self.form == CLASS else ("parse",)

    @property
    def options(self) -> tuple[str, str]:
        """The label that blocks and the one that lets pass; of several the first."""
        block, allow = (next(label for label, said in self.labels.items() if said == one) for one in ("BLOCK", "ALLOW"))
        return block, allow

    def mapping(self, reading: Reading) -> dict[str, Literal["BLOCK", "ALLOW"]]:
        """Return the labels with the verdict that each stands for."""
        return {**self.labels, **self.loose} if reading == "loose" else dict(self.labels)

    def templates(self) -> JudgeTemplates:
        """Return what it is shown: the query as a user's turn, or with a document; its own prompt is its template's."""
        return JudgeTemplates(alone=_bare(_TURN), with_context=_bare(self.context_turn or _TURN))

    def claims(self, lang: str) -> bool:
        """Return whether its makers claim the language of a BCP 47 tag."""
        return lang.partition("-")[0] in self.languages

    def off_label(self, lang: str, *, variant: str) -> tuple[str, ...]:
        """Return why a variant's use in a language is off-label, empty where it is not.

        A back-translation is English, whatever the query's language.
        """
        shown = "en" if variant == "backtranslate" else lang
        reasons = [] if self.claims(shown) else [LANGUAGE]
        return (*reasons, *([] if self.judges_privacy_queries else [PURPOSE]))


def _bare(turn: str) -> Template:
    return Template(system="", turn=turn, shots=(), stop=())


def _require_fields(turn: str) -> None:
    found = {name for _, name, _, _ in string.Formatter().parse(turn) if name is not None}
    wanted = FIELDS["judge_with_context"]
    if found != wanted:
        raise ValueError(f'"context_turn" has the placeholders {sorted(found)}; it needs exactly {sorted(wanted)}')


def load_guard(folder: Path, name: str) -> Guard:
    """Return a guard from its file in the folder.

    Raises ConfigError, with the nearest name, for one that is not there, DataError for a file that does not fit.
    """
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = [one.stem for one in folder.glob("*.yaml")]
        raise ConfigError(f'config key "judge.guard": {path} is missing; {did_you_mean(name, known)}')
    try:
        return msgspec.convert(read_plain(path), Guard)
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not readable as UTF-8 YAML: {error}") from error
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: {error}") from error


def guard_verdict(guard: Guard, raw: str, *, reading: Reading) -> Verdict:
    """Return what a reply means, UNPARSED for all that is not in the guard's documented form; never raises."""
    label = guard_label(guard, raw)
    return "UNPARSED" if label is None else guard.mapping(reading)[label]


def guard_label(guard: Guard, raw: str) -> str | None:
    """Return the one label that a reply gives in the guard's form, None for any other reply.

    Case, width and outer white space are folded; tokens that end a turn and a closed block of reasoning before the
    reply are left out. A label that lets pass beside a category contradicts itself, and a category that the guard
    does not have is none of its replies: both give None.
    """
    lines = _lines(raw)
    if guard.form == CLASS:
        return _known(lines[0], guard.labels) if len(lines) == 1 else None
    found = _from_fields(lines) if guard.form == "safety_fields" else _from_lines(lines)
    if found is None:
        return None
    said, categories = found
    label = _known(said, guard.labels)
    if label is None or any(_known(one, guard.categories) is None for one in categories):
        return None
    return None if categories and guard.labels[label] == "ALLOW" else label


def _lines(raw: str) -> list[str]:
    """Return the reply's lines that are not empty, folded, without asterisks around them."""
    text = normalise(_SPECIAL.sub(" ", raw), casefold=True, keep_lines=True).text
    stripped = (line.strip(" \t*") for line in _THOUGHT.sub("", text).split("\n"))
    return [line for line in stripped if line]


def _known(said: str, names: Iterable[str]) -> str | None:
    return next((name for name in names if normalise(name, casefold=True).text == said), None)


def _from_lines(lines: list[str]) -> tuple[str, list[str]] | None:
    """Read a label on a line of its own and, on a second one, codes with commas between them."""
    label_and_codes = 2
    if not 1 <= len(lines) <= label_and_codes:
        return None
    return lines[0], _listed(lines[1]) if len(lines) == label_and_codes else []


def _from_fields(lines: list[str]) -> tuple[str, list[str]] | None:
    """Read `Safety:` first and, after it, at most one `Categories:`."""
    fields = [_FIELD.fullmatch(line) for line in lines]
    names = [field[1] if field else "" for field in fields]
    if names not in (["safety"], ["safety", "categories"]):
        return None
    values = [field[2].strip(" *") for field in fields if field]
    return values[0], [one for one in _listed(",".join(values[1:])) if one != NO_CATEGORY]


def _listed(text: str) -> list[str]:
    return [piece for part in text.split(",") if (piece := part.strip())]
