"""What the grid's synthetic corpora and canaries are made from, read from YAML and checked once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from mragaudit.corpus.templates import FactTemplate, fact_template
from mragaudit.corpus.yamlfiles import Node, load_yaml
from mragaudit.errors import ConfigError, DataError
from mragaudit.records.grid import ITEM_KINDS, ItemKind

NumberKind = Literal["phone", "id"]
Script = Literal["latin", "han", "arabic"]

NUMBER_KINDS: tuple[NumberKind, ...] = get_args(NumberKind)
SCRIPTS: tuple[Script, ...] = get_args(Script)

_PEOPLE = ("name_1", "email_1", "name_2", "email_2")
_MIN_FACTS, _MIN_FILLERS, _MIN_CARRIERS, _MIN_SYLLABLES = 2, 6, 2, 10
_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class NameLists:
    """Words from which people, projects and products are put together."""

    given_names: tuple[str, ...]
    surname_stems: tuple[str, ...]
    surname_endings: tuple[str, ...]
    project_first: tuple[str, ...]
    project_second: tuple[str, ...]
    products: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TitleTemplate:
    """How public titles of one form are made: from words, or from a pattern."""

    pattern: str
    """`#` stands for a digit, `?` for a capital letter; empty where the title is made of words."""
    endings: tuple[str, ...]
    """Last words of a title made of words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """One kind of document: how it begins, and the sentences that its body is drawn from."""

    topic: str
    title: TitleTemplate
    heads: tuple[str, ...]
    facts: tuple[FactTemplate, ...]
    fillers: tuple[str, ...]
    carriers: dict[NumberKind, tuple[str, ...]]
    """Sentences that hold a phone number or an id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Domain:
    """What anybody may know of a corpus before the first question."""

    description: str
    topics: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class GridTemplates:
    """Everything that the documents of one synthetic corpus are made from."""

    corpus: str
    domain: Domain
    forms: tuple[Form, ...]
    names: NameLists


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """Words that are kept free in a document for a sentence that is still to come."""

    least: int = 0
    most: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CanaryTemplates:
    """Everything that canaries are made from, with the sentences that carry them."""

    email: str
    """Address with the placeholder {number}."""
    syllables: dict[Script, tuple[str, ...]]
    carriers: dict[ItemKind, tuple[str, ...]]

    def room(self, kind: ItemKind) -> Room:
        """Return how many words a carrier of the class takes; a value has one to three of them."""
        lengths = [len(carrier.split()) for carrier in self.carriers[kind]]
        return Room(least=min(lengths), most=max(lengths) + 2)


def load_grid_templates(folder: Path, corpus: str) -> GridTemplates:
    """Return the templates of the synthetic corpus `email` or `business`.

    Raises ConfigError naming a missing file, DataError naming file and key of a bad entry.
    """
    top = load_yaml(folder / f"{corpus}.yaml").mapping(required=("corpus", "domain", "topics", "forms"))
    top["corpus"].choice([corpus])
    return GridTemplates(
        corpus=corpus,
        domain=_domain(top),
        forms=tuple(_form(node) for node in top["forms"].items()),
        names=_names(load_yaml(folder / "names.yaml")),
    )


def load_domain(folder: Path, corpus: str) -> Domain:
    """Return what an attacker may know of a corpus; raises as `load_grid_templates` does."""
    top = load_yaml(folder / f"{corpus}.yaml").mapping(required=("corpus", "domain", "topics"), optional=("forms",))
    top["corpus"].choice([corpus])
    return _domain(top)


def load_canary_templates(folder: Path) -> CanaryTemplates:
    """Return the templates in `canaries.yaml`; raises as `load_grid_templates` does."""
    top = load_yaml(folder / "canaries.yaml").mapping(required=("email", "syllables", "carriers"))
    syllables = top["syllables"].mapping(required=SCRIPTS)
    carriers = top["carriers"].mapping(required=ITEM_KINDS)
    return CanaryTemplates(
        email=top["email"].template(required=("number",)),
        syllables={script: syllables[script].texts(at_least=_MIN_SYLLABLES) for script in SCRIPTS},
        carriers={kind: carriers[kind].templates(required=("value",), at_least=_MIN_CARRIERS) for kind in ITEM_KINDS},
    )


def read_vocabulary(paths: Iterable[Path]) -> frozenset[str]:
    """Return the case-folded words of text files, YAML among them: runs of letters of any script.

    Raises ConfigError naming a missing file, DataError naming one that is not UTF-8.
    """
    words: set[str] = set()
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise ConfigError(f"{path}: this vocabulary is missing; canaries have to avoid its words") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: this is no text in UTF-8: {error}") from error
        words.update(words_of(text))
    return frozenset(words)


def words_of(text: str) -> set[str]:
    """Return the case-folded runs of letters of a text."""
    return {word.casefold() for word in _LETTERS.findall(text)}


def _domain(top: dict[str, Node]) -> Domain:
    return Domain(description=top["domain"].text(), topics=top["topics"].texts())


def _form(top: Node) -> Form:
    members = top.mapping(required=("topic", "title", "heads", "facts", "fillers", "carriers"))
    carriers = members["carriers"].mapping(required=NUMBER_KINDS)
    heads = members["heads"]
    return Form(
        topic=members["topic"].text(),
        title=_title(members["title"]),
        heads=heads.templates(required=("title", "name_1", "email_1"), optional=_PEOPLE),
        facts=tuple(fact_template(node) for node in members["facts"].items(at_least=_MIN_FACTS)),
        fillers=members["fillers"].templates(at_least=_MIN_FILLERS),
        carriers={kind: carriers[kind].templates(required=("value",), optional=_PEOPLE) for kind in NUMBER_KINDS},
    )


def _title(node: Node) -> TitleTemplate:
    members = node.mapping(optional=("words", "endings", "pattern"))
    if ("pattern" in members) == ("words" in members) or ("words" in members) != ("endings" in members):
        raise node.error('either "pattern" or "words: true" with "endings" has to stand here')
    return TitleTemplate(
        pattern=members["pattern"].text() if "pattern" in members else "",
        endings=members["endings"].texts() if "endings" in members else (),
    )


def _names(top: Node) -> NameLists:
    names = tuple(NameLists.__slots__)
    members = top.mapping(required=names)
    return NameLists(**{name: members[name].texts() for name in names})
