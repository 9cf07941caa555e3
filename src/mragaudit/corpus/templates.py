"""Templates of documents and queries, read from YAML and checked once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from mragaudit.corpus.yamlfiles import Node, load_yaml
from mragaudit.records.documents import PII_TYPES, Level, PiiType
from mragaudit.records.queries import PARAPHRASES, Paraphrase

AnswerKind = Literal["code", "number", "date", "time", "product"]

_TOPIC_FILES = ("email", "medical", "support", "legal")
_MIN_LEADS, _MIN_CARRIERS, _MIN_FACTS, _MIN_FILLERS, _MIN_WORDINGS = 6, 6, 8, 8, 3
_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class FactTemplate:
    """A sentence with one non-personal answer, and the question that it answers."""

    sentence: str
    question: str
    kind: AnswerKind
    pattern: str
    """For a code: `#` stands for a digit, `?` for a capital letter; empty for other kinds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TopicTemplates:
    """All sentences of one topic."""

    topic: str
    anchor_type: str
    anchor_pattern: str
    """As in FactTemplate; empty where the anchor is a project name."""
    noun: str
    """Word that stands before an anchor in a question; may be empty."""
    levels: dict[Level, int]
    """Weight of each sensitivity level."""
    subjects: tuple[str, ...]
    leads: tuple[str, ...]
    facts: tuple[FactTemplate, ...]
    fillers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class WordLists:
    """Words from which names of things are put together."""

    project_first: tuple[str, ...]
    project_second: tuple[str, ...]
    products: tuple[str, ...]
    streets: tuple[str, ...]
    street_words: tuple[str, ...]
    towns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusTemplates:
    """Everything that documents are made from."""

    topics: tuple[TopicTemplates, ...]
    carriers: dict[PiiType, tuple[str, ...]]
    words: WordLists
    vocabulary: frozenset[str]
    """Case-folded words of all files in the folder: no planted person name uses one of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryTemplates:
    """Everything that English attack queries are made from."""

    wordings: dict[Paraphrase, dict[PiiType, tuple[str, ...]]]
    example_references: tuple[str, ...]
    example_values: dict[PiiType, tuple[str, ...]]
    """Invented values for the solved example, the first one preferred."""
    nouns: dict[str, str]
    """Anchor type → word before the anchor."""


def refer(anchor: str, noun: str) -> str:
    """Return how a question names an anchor: with its noun, or alone where there is none."""
    return f"{noun} {anchor}" if noun else anchor


def load_corpus_templates(folder: Path) -> CorpusTemplates:
    """Return the templates of all topics.

    Raises ConfigError naming a missing file, DataError naming file and key of a bad entry.
    """
    carriers = load_yaml(folder / "carriers.yaml").mapping(required=PII_TYPES)
    return CorpusTemplates(
        topics=tuple(_topic(load_yaml(folder / f"{name}.yaml")) for name in _TOPIC_FILES),
        carriers={
            kind: carriers[kind].templates(
                required=("value",), optional=("subject", "Subject", "anchor"), at_least=_MIN_CARRIERS
            )
            for kind in PII_TYPES
        },
        words=_words(load_yaml(folder / "words.yaml")),
        vocabulary=_vocabulary(folder),
    )


def load_query_templates(folder: Path) -> QueryTemplates:
    """Return the templates in `queries.yaml`; raises as `load_corpus_templates` does."""
    top = load_yaml(folder / "queries.yaml").mapping(required=(*PARAPHRASES, "examples", "nouns"))
    examples = top["examples"].mapping(required=("references", *PII_TYPES))
    return QueryTemplates(
        wordings={shape: _wordings(top[shape], shape) for shape in PARAPHRASES},
        example_references=examples["references"].texts(),
        example_values={kind: examples[kind].texts() for kind in PII_TYPES},
        nouns={name: node.text() for name, node in top["nouns"].mapping().items()},
    )


def _wordings(node: Node, shape: Paraphrase) -> dict[PiiType, tuple[str, ...]]:
    required = ("reference", "example_reference", "example_value") if shape == "icl" else ("reference",)
    members = node.mapping(required=PII_TYPES)
    return {kind: members[kind].templates(required=required, at_least=_MIN_WORDINGS) for kind in PII_TYPES}


def _topic(top: Node) -> TopicTemplates:
    members = top.mapping(required=("topic", "anchor", "levels", "subjects", "leads", "facts", "fillers"))
    anchor = members["anchor"].mapping(required=("type", "noun"), optional=("pattern", "words"))
    if ("pattern" in anchor) == ("words" in anchor):
        raise members["anchor"].error('exactly one of "pattern" and "words: true" has to stand here')
    return TopicTemplates(
        topic=members["topic"].text(),
        anchor_type=anchor["type"].choice(("project", "case", "ticket", "contract")),
        anchor_pattern=anchor["pattern"].text() if "pattern" in anchor else "",
        noun=anchor["noun"].text(),
        levels=_levels(members["levels"]),
        subjects=members["subjects"].texts(),
        leads=members["leads"].templates(required=("anchor",), at_least=_MIN_LEADS),
        facts=tuple(fact_template(node) for node in members["facts"].items(at_least=_MIN_FACTS)),
        fillers=members["fillers"].templates(at_least=_MIN_FILLERS),
    )


def _levels(node: Node) -> dict[Level, int]:
    weights: dict[Level, int] = {}
    for name, member in node.mapping(required=get_args(Level)).items():
        if not isinstance(member.value, int) or member.value < 0:
            raise member.error("a weight of 0 or more has to stand here")
        weights[cast("Level", name)] = member.value
    if not sum(weights.values()):
        raise node.error("all weights are 0; at least one level has to be possible")
    return weights


def fact_template(node: Node) -> FactTemplate:
    """Return a sentence with its question; raises DataError naming file and key of a bad entry."""
    members = node.mapping(required=("sentence", "question", "kind"), optional=("pattern",))
    kind = cast("AnswerKind", members["kind"].choice(get_args(AnswerKind)))
    if (kind == "code") != ("pattern" in members):
        raise node.error('"pattern" belongs to facts of kind "code", and to them alone')
    return FactTemplate(
        sentence=members["sentence"].template(required=("answer",)),
        question=members["question"].template(required=("reference",)),
        kind=kind,
        pattern=members["pattern"].text() if kind == "code" else "",
    )


def _words(top: Node) -> WordLists:
    names = ("project_first", "project_second", "products", "streets", "street_words", "towns")
    members = top.mapping(required=(*names, "names_to_avoid"))
    return WordLists(**{name: members[name].texts() for name in names})


def _vocabulary(folder: Path) -> frozenset[str]:
    files = sorted(folder.glob("*.yaml"))
    return frozenset(word.casefold() for file in files for word in _LETTERS.findall(file.read_text("utf-8")))
