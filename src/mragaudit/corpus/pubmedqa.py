"""PubMedQA from its published file: abstracts without their conclusions, titled by their question.

Jin et al. (2019), EMNLP, arXiv 1909.06146; `ori_pqal.json` is one object, PubMed id → article.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from mragaudit.corpus.grid_drafts import Draft
from mragaudit.corpus.grid_templates import Room
from mragaudit.errors import ConfigError, DataError
from mragaudit.records.documents import Fact

CORPUS = "pubmedqa"
NO_TOPIC = "biomedicine"
LAYOUT = "an article has QUESTION, CONTEXTS, LABELS, MESHES and final_decision (yes, no or maybe), as in ori_pqal.json"
# Headings that say who was studied, not what: nearly every abstract has some of them.
_CHECK_TAGS = frozenset(
    {"Adolescent", "Adult", "Aged", "Aged, 80 and over", "Animals", "Child", "Child, Preschool", "Female", "Humans",
     "Infant", "Infant, Newborn", "Male", "Middle Aged", "Pregnancy", "Young Adult"}
)  # fmt: skip


class Article(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the published file; other keys of it are not used."""

    question: str = msgspec.field(name="QUESTION")
    contexts: tuple[str, ...] = msgspec.field(name="CONTEXTS")
    labels: tuple[str, ...] = msgspec.field(name="LABELS")
    meshes: tuple[str, ...] = msgspec.field(name="MESHES")
    final_decision: Literal["yes", "no", "maybe"]

    def __post_init__(self) -> None:
        if not self.question.strip():
            raise ValueError('"QUESTION" is empty; it needs the question of the article')
        if not self.contexts or not all(text.strip() for text in self.contexts):
            raise ValueError('"CONTEXTS" needs at least one text, none of them empty')
        if len(self.labels) != len(self.contexts):
            raise ValueError(f'"LABELS" has {len(self.labels)} entries for {len(self.contexts)} in "CONTEXTS"')
        for text in (self.question, *self.contexts, *self.labels, *self.meshes):
            if any("\ud800" <= char <= "\udfff" for char in text):  # JSON can escape one, UTF-8 cannot hold it
                raise ValueError("a text holds half of a surrogate pair; save the file in UTF-8 without escapes")


def read_articles(path: Path) -> tuple[Article, ...]:
    """Return the articles in the order of the file.

    Raises ConfigError for a file that cannot be read, DataError naming file and key (a PubMed id and what is wrong
    in its entry) for anything else than the published layout.
    """
    try:
        entries = json.loads(path.read_bytes(), object_pairs_hook=_unique)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: this file is missing; give the path of the published ori_pqal.json") from error
    except OSError as error:
        problem = f"{path}: this cannot be read ({error.strerror}); give the path of the published ori_pqal.json"
        raise ConfigError(problem) from error
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, a number or a nesting beyond any article
        raise DataError(f"{path}: this is no JSON in UTF-8 as published: {error}") from error
    if not isinstance(entries, dict) or not entries:
        raise DataError(f"{path}: an object of PubMed ids to articles has to stand here, as in ori_pqal.json")
    return tuple(_article(entry, path=path, key=key) for key, entry in entries.items())


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object; raises ValueError where a name stands twice, of which JSON keeps the last."""
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at]))
        raise ValueError(f'the key "{twice}" stands twice in one object')
    return members


def _article(entry: object, *, path: Path, key: str) -> Article:
    try:
        return msgspec.convert(entry, Article)
    except msgspec.ValidationError as error:
        raise DataError(f'{path}, key "{key}": {error}; {LAYOUT}') from error


@dataclass(frozen=True, kw_only=True, slots=True)
class PubMedSource:
    """Draws documents from the articles: the first ones in file order, or a sample without replacement."""

    articles: tuple[Article, ...]
    in_order: bool = False
    corpus: str = CORPUS

    def drafts(self, n_documents: int, *, rng: np.random.Generator, room: Room) -> list[Draft]:  # noqa: ARG002  # articles keep their length
        """Return drafts without personal items; raises ConfigError when there are too few articles.

        Of articles with the same question the first alone is used.
        """
        usable = usable_articles(self.articles, n_documents=n_documents)
        chosen = range(n_documents) if self.in_order else rng.permutation(len(usable))[:n_documents]
        return [_draft(usable[int(i)]) for i in chosen]


def usable_articles(articles: Sequence[Article], *, n_documents: int) -> list[Article]:
    """Return the articles, of those with one question the first; raises ConfigError when there are too few."""
    first = {article.question.strip().casefold(): article for article in reversed(articles)}
    if n_documents > len(first):
        raise ConfigError(
            f"{n_documents} documents are asked for, and the PubMedQA file has {len(first)} articles with distinct "
            "questions; lower hook_audit.indexed and held_out, or put a larger file into hook_audit.pubmedqa"
        )
    return list(first.values())[::-1]


def _draft(article: Article) -> Draft:
    """Return the abstract under its question, which is its public handle and a benign question as well.

    The known answer is the published decision; the majority class is right in more than half of the cases.
    """
    title = article.question.strip()
    sentences = tuple(f"{label}: {text.strip()}" for label, text in zip(article.labels, article.contexts, strict=True))
    return Draft(
        title=title,
        topic=next((mesh for mesh in article.meshes if mesh not in _CHECK_TAGS), NO_TOPIC),
        head=f"{title}\n\n",
        sentences=sentences,
        items=(),
        facts=(Fact(question=title, answer=article.final_decision),),
    )
