"""Synthetic documents: one planted item and one anchor each, even over topics and kinds of item."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mragaudit.corpus.anchors import AnchorSource
from mragaudit.corpus.draws import MAX_TRIES, fill_pattern, pick
from mragaudit.corpus.templates import CorpusTemplates, FactTemplate, TopicTemplates, WordLists, refer
from mragaudit.corpus.values import ValueSource
from mragaudit.errors import ConfigError
from mragaudit.records.documents import PII_TYPES, Document, Fact, PiiType, document_key

MIN_FACTS = 2
_LATEST_CORE = 3
"""At most so many sentences stand before the anchor, so that a truncated document still holds it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A document together with the templates of its sentences, in their order."""

    document: Document
    skeleton: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """What a document is about before its sentences are chosen."""

    topic: TopicTemplates
    pii_type: PiiType
    pii_value: str
    anchor: str
    carriers: tuple[str, ...]
    words: WordLists


@dataclass(frozen=True, kw_only=True, slots=True)
class _Size:
    min_words: int
    max_words: int
    n_facts: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sentence:
    template: str
    text: str


def synthesise(
    *,
    n_documents: int,
    min_words: int,
    max_words: int,
    n_facts: int,
    templates: CorpusTemplates,
    rng: np.random.Generator,
    seed: int,
) -> list[Document]:
    """Return `n_documents` documents sorted by id; the same arguments give the same documents.

    Words are what stands between white space, `min_words` to `max_words` of them in every document. `rng`
    draws everything but the raw material of names and addresses, which Faker draws from `seed`.
    Raises ConfigError when the number is no positive multiple of five, when the bounds leave no room, or when
    unused names or anchors run out.
    """
    drafts = draft_documents(
        n_documents=n_documents,
        min_words=min_words,
        max_words=max_words,
        n_facts=n_facts,
        templates=templates,
        rng=rng,
        seed=seed,
    )
    return sorted((draft.document for draft in drafts), key=document_key)


def draft_documents(
    *,
    n_documents: int,
    min_words: int,
    max_words: int,
    n_facts: int,
    templates: CorpusTemplates,
    rng: np.random.Generator,
    seed: int,
) -> list[Draft]:
    """Return the documents of `synthesise` in the order of drawing; no two share a skeleton."""
    size = _Size(min_words=min_words, max_words=max_words, n_facts=n_facts)
    _check(n_documents, size)
    plans = _plans(n_documents, templates, rng=rng, seed=seed)
    skeletons: set[tuple[str, ...]] = set()
    answers: set[str] = set()
    drafts: list[Draft] = []
    for plan in plans:
        draft = _draft(plan, size, rng=rng, skeletons=skeletons, answers=answers)
        skeletons.add(draft.skeleton)
        answers.update(fact.answer for fact in draft.document.facts)
        drafts.append(draft)
    return drafts


def _check(n_documents: int, size: _Size) -> None:
    if n_documents < 1 or n_documents % len(PII_TYPES):
        raise ConfigError(
            f"corpus.n_documents is {n_documents}; it has to be a positive multiple of {len(PII_TYPES)}, "
            "so that every kind of personal item is planted equally often"
        )
    if not 1 <= size.min_words <= size.max_words:
        raise ConfigError(
            f"corpus.min_words is {size.min_words} and corpus.max_words {size.max_words}; "
            "they have to be positive and in this order"
        )
    if size.n_facts < MIN_FACTS:
        raise ConfigError(f"corpus.n_facts is {size.n_facts}; a document has at least {MIN_FACTS} facts")


def _plans(n_documents: int, templates: CorpusTemplates, *, rng: np.random.Generator, seed: int) -> list[_Plan]:
    n_of_kind = n_documents // len(PII_TYPES)
    values = ValueSource(words=templates.words, vocabulary=templates.vocabulary, n_ids=n_of_kind, rng=rng, seed=seed)
    anchors = AnchorSource(words=templates.words, rng=rng)
    plans: list[_Plan] = []
    for position in range(n_documents):
        kind_number = position % len(PII_TYPES)
        # Each kind starts its round of the topics one further, so that the topics are even as well.
        topic = templates.topics[(position // len(PII_TYPES) + kind_number) % len(templates.topics)]
        kind = PII_TYPES[kind_number]
        plans.append(
            _Plan(
                topic=topic,
                pii_type=kind,
                pii_value=values.draw(kind),
                anchor=anchors.draw(topic),
                carriers=templates.carriers[kind],
                words=templates.words,
            )
        )
    return plans


def _draft(
    plan: _Plan,
    size: _Size,
    *,
    rng: np.random.Generator,
    skeletons: set[tuple[str, ...]],
    answers: set[str],
) -> Draft:
    if size.n_facts > len(plan.topic.facts):
        raise ConfigError(
            f"corpus.n_facts is {size.n_facts}; topic {plan.topic.topic} has {len(plan.topic.facts)} facts"
        )
    for _ in range(MAX_TRIES):
        sentences, facts = _compose(plan, size, rng=rng)
        text = " ".join(sentence.text for sentence in sentences)
        skeleton = tuple(sentence.template for sentence in sentences)
        fits = size.min_words <= len(text.split()) <= size.max_words
        clear = all(fact.answer not in answers and text.count(fact.answer) == 1 for fact in facts)
        if fits and clear and skeleton not in skeletons:
            return Draft(document=_document(plan, text, facts=facts, rng=rng), skeleton=skeleton)
    raise ConfigError(
        f"no document of the topic {plan.topic.topic} with {size.n_facts} facts has {size.min_words} to "
        f"{size.max_words} words; widen corpus.min_words and corpus.max_words, or change corpus.n_facts"
    )


def _compose(plan: _Plan, size: _Size, *, rng: np.random.Generator) -> tuple[list[_Sentence], tuple[Fact, ...]]:
    """Return the sentences in order, and the facts; the anchor's sentence stands right before the item's."""
    core = _core(plan, rng=rng)
    chosen = [plan.topic.facts[int(i)] for i in rng.permutation(len(plan.topic.facts))[: size.n_facts]]
    facts = tuple(_fact(template, plan, rng=rng) for template in chosen)
    rest = [
        _Sentence(template=template.sentence, text=template.sentence.format(answer=fact.answer))
        for template, fact in zip(chosen, facts, strict=True)
    ]
    rest += _fillers(plan.topic, size, taken=_count_words([*core, *rest]), rng=rng)
    rest = [rest[int(i)] for i in rng.permutation(len(rest))]
    place = int(rng.integers(min(_LATEST_CORE, len(rest)) + 1))
    return rest[:place] + core + rest[place:], facts


def _core(plan: _Plan, *, rng: np.random.Generator) -> list[_Sentence]:
    lead, carrier = pick(rng, plan.topic.leads), pick(rng, plan.carriers)
    subject = pick(rng, plan.topic.subjects)
    item = carrier.format(
        subject=subject,
        Subject=subject[0].upper() + subject[1:],
        value=plan.pii_value,
        anchor=refer(plan.anchor, plan.topic.noun),
    )
    return [
        _Sentence(template=lead, text=lead.format(anchor=plan.anchor)),
        _Sentence(template=carrier, text=item),
    ]


def _fillers(topic: TopicTemplates, size: _Size, *, taken: int, rng: np.random.Generator) -> list[_Sentence]:
    target = int(rng.integers(size.min_words, size.max_words + 1))
    chosen: list[_Sentence] = []
    for i in rng.permutation(len(topic.fillers)):
        filler = _Sentence(template=topic.fillers[int(i)], text=topic.fillers[int(i)].format())
        words = _count_words([filler])
        if taken < target and taken + words <= size.max_words:
            chosen.append(filler)
            taken += words
    return chosen


def _count_words(sentences: list[_Sentence]) -> int:
    return sum(len(sentence.text.split()) for sentence in sentences)


def _fact(template: FactTemplate, plan: _Plan, *, rng: np.random.Generator) -> Fact:
    question = template.question.format(reference=refer(plan.anchor, plan.topic.noun))
    return Fact(question=question, answer=draw_answer(template, plan.words.products, rng=rng))


def draw_answer(template: FactTemplate, products: Sequence[str], *, rng: np.random.Generator) -> str:
    """Return a language-neutral answer of the template's kind."""
    match template.kind:
        case "code":
            return fill_pattern(rng, template.pattern)
        case "number":
            return fill_pattern(rng, "###")
        case "date":
            return str(datetime.date(2026, 1, 1) + datetime.timedelta(days=int(rng.integers(3 * 365))))
        case "time":
            return f"{rng.integers(8, 18):02d}:{5 * rng.integers(1, 12):02d}"
        case "product":
            return f"{pick(rng, products)} {fill_pattern(rng, '###')}"


def _document(plan: _Plan, text: str, *, facts: tuple[Fact, ...], rng: np.random.Generator) -> Document:
    levels = list(plan.topic.levels)
    weights = np.array([plan.topic.levels[level] for level in levels], dtype=float)
    return Document(
        doc_id="d" + hashlib.sha256(text.encode("utf-8")).hexdigest()[:12],
        topic=plan.topic.topic,
        pii_type=plan.pii_type,
        pii_value=plan.pii_value,
        anchor=plan.anchor,
        anchor_type=plan.topic.anchor_type,
        level=levels[int(rng.choice(len(levels), p=weights / weights.sum()))],
        text=text,
        facts=facts,
    )
