"""Judge controls: queries whose verdict is known, the same ids in every language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mragaudit.corpus.queries import query_id_of
from mragaudit.corpus.yamlfiles import Node, load_yaml
from mragaudit.errors import ConfigError
from mragaudit.records.queries import Query

_ID = re.compile(r"(attack|benign)-([0-9]+)", re.ASCII)
_CLASSES = ("attack", "benign")
_LEAST_PER_CLASS = 2


def load_controls(folder: Path, *, languages: Sequence[str], per_class: int | None) -> list[Query]:
    """Return the controls of all languages, by language and then by class and number.

    `attack-NN` has the verdict BLOCK, `benign-NN` ALLOW; odd numbers choose the threshold (calibration), even
    ones check it. `per_class` keeps that many of each class, odd and even in turn from the lowest; None
    keeps all. Each control carries its own small document from `contexts.yaml`.
    Raises ConfigError naming the file of a missing language or for `per_class` below 2, DataError naming file
    and key when ids differ between languages, come twice, have no context, or leave a split empty.
    """
    if per_class is not None and per_class < _LEAST_PER_CLASS:
        raise ConfigError(f"controls per class are {per_class}; {_LEAST_PER_CLASS} is the least, one for each split")
    contexts = _contexts(folder / "contexts.yaml")
    queries: list[Query] = []
    for lang in languages:
        nodes = _texts(folder / f"{lang}.yaml", lang)
        _require_same_ids(nodes, contexts, where=folder / f"{lang}.yaml")
        texts = {name: node.text() for name, node in nodes.items()}
        for kind in _CLASSES:
            ids = _balanced([name for name in texts if name.startswith(kind)], where=folder / f"{lang}.yaml")
            queries += [_control(name, texts[name], lang=lang, context=contexts[name]) for name in ids[:per_class]]
    return queries


def _contexts(path: Path) -> dict[str, str]:
    top = load_yaml(path).mapping(required=("contexts",))
    return {name: node.text() for name, node in top["contexts"].mapping().items()}


def _texts(path: Path, lang: str) -> dict[str, Node]:
    if not path.exists():
        raise ConfigError(
            f'{path}: the language "{lang}" has no judge controls; add this file with the ids of the other languages'
        )
    top = load_yaml(path).mapping(required=("language", "controls"))
    top["language"].choice([lang])
    texts: dict[str, Node] = {}
    for item in top["controls"].items():
        members = item.mapping(required=("id", "text"))
        name = members["id"].text()
        if not _ID.fullmatch(name):
            raise members["id"].error(f'"{name}" is no id of a control; it looks like attack-01 or benign-01')
        if name in texts:
            raise members["id"].error(f'"{name}" stands here twice; ids are unique')
        if not members["text"].text().strip():
            raise members["text"].error("the text is empty")
        texts[name] = members["text"]
    return texts


def _require_same_ids(texts: dict[str, Node], contexts: dict[str, str], *, where: Path) -> None:
    top = Node(path=where, key="controls", value=None)
    for name in sorted(contexts.keys() - texts.keys()):
        raise top.error(f'"{name}" is missing; every language has every control that contexts.yaml has')
    for name in sorted(texts.keys() - contexts.keys()):
        raise texts[name].error(f'"{name}" has no entry in contexts.yaml; add its small document there')


def _balanced(ids: Sequence[str], *, where: Path) -> list[str]:
    """Return the ids with odd and even numbers in turn, by number; what one split has over comes last."""
    ranks: dict[str, tuple[int, int]] = {}
    counts = {0: 0, 1: 0}
    for name in sorted(ids, key=_number):
        parity = _number(name) % 2
        ranks[name] = (counts[parity], 1 - parity)
        counts[parity] += 1
    if not all(counts.values()):
        raise Node(path=where, key="controls", value=None).error(
            "each class needs odd ids (calibration) and even ids (check)"
        )
    return sorted(ranks, key=ranks.__getitem__)


def _number(name: str) -> int:
    return int(name.partition("-")[2])


def _control(name: str, text: str, *, lang: str, context: str) -> Query:
    return Query(
        query_id=query_id_of(
            doc_id=None,
            intent="control",
            paraphrase=None,
            text=text,
            lang=lang,
            query_source="control",
            author=None,
        ),
        doc_id=None,
        intent="control",
        paraphrase=None,
        text=text,
        lang=lang,
        only_in_lang=True,
        expected_answer=None,
        expected_verdict="BLOCK" if name.startswith("attack") else "ALLOW",
        query_source="control",
        control_id=name,
        control_split="calibration" if _number(name) % 2 else "check",
        context=context,
    )
