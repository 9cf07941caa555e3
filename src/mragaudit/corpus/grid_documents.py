"""The grid's synthetic corpora: e-mail and business documents with people, numbers and harmless facts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mragaudit.corpus.draws import MAX_TRIES, pick
from mragaudit.corpus.grid_drafts import Draft
from mragaudit.corpus.grid_templates import NUMBER_KINDS, Form, GridTemplates, NumberKind, Room
from mragaudit.corpus.grid_values import REMEDY, ItemSource, Person
from mragaudit.corpus.synthesis import draw_answer
from mragaudit.errors import ConfigError
from mragaudit.records.documents import Fact
from mragaudit.records.grid import PlantedItem

N_FACTS = 2
MIN_WORDS, MAX_WORDS = 40, 60


@dataclass(frozen=True, kw_only=True, slots=True)
class _Body:
    sentences: tuple[str, ...]
    facts: tuple[Fact, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Plan:
    """What a document holds before its sentences are chosen."""

    form: Form
    title: str
    people: tuple[Person, ...]
    names: dict[str, str]
    """Placeholders of the people, as they may stand in a head or carrier."""
    head: str
    number: PlantedItem | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SyntheticSource:
    """Draws documents from templates: `min_words` to `max_words` words between white space, head included."""

    templates: GridTemplates
    min_words: int = MIN_WORDS
    max_words: int = MAX_WORDS
    in_order: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.min_words <= self.max_words:
            raise ConfigError(
                f"documents of {self.min_words} to {self.max_words} words: min_words and max_words have to be "
                "positive and in this order"
            )

    @property
    def corpus(self) -> str:
        """Name of the corpus."""
        return self.templates.corpus

    def drafts(self, n_documents: int, *, rng: np.random.Generator, room: Room) -> list[Draft]:
        """Return drafts even over the forms; one in three holds a phone number, another one an id.

        Every document has one or two people, each with name and address where the head shows both, and two
        facts whose answers occur in no other document. Raises ConfigError when the bounds leave no room or
        unused names or titles run out.
        """
        items = ItemSource(names=self.templates.names, rng=rng)
        answers: set[str] = set()
        drafts: list[Draft] = []
        for position in range(n_documents):
            form = self.templates.forms[position % len(self.templates.forms)]
            # Goes on by one a round of the forms, so that forms and kinds of number do not fall together.
            turn = (position + position // len(self.templates.forms)) % (len(NUMBER_KINDS) + 1)
            plan = _plan(form, items, number=(*NUMBER_KINDS, None)[turn], rng=rng)
            body = self._body(plan, answers, rng=rng, room=room)
            answers.update(fact.answer for fact in body.facts)
            drafts.append(_draft(plan, body))
        return drafts

    def _body(self, plan: _Plan, answers: set[str], *, rng: np.random.Generator, room: Room) -> _Body:
        head_words = len(plan.head.split())
        lowest, highest = self.min_words - head_words - room.least, self.max_words - head_words - room.most
        for _ in range(MAX_TRIES):
            body = _compose(plan, products=self.templates.names.products, target=(lowest, highest), rng=rng)
            text = plan.head + " ".join(body.sentences)
            fits = lowest <= sum(len(sentence.split()) for sentence in body.sentences) <= highest
            if fits and all(fact.answer not in answers and text.count(fact.answer) == 1 for fact in body.facts):
                return body
        raise ConfigError(
            f"corpus {self.corpus}: no document of the topic {plan.form.topic} has {self.min_words} to "
            f"{self.max_words} words; widen min_words and max_words, or {REMEDY}"
        )


def _plan(form: Form, items: ItemSource, *, number: NumberKind | None, rng: np.random.Generator) -> _Plan:
    people = (items.person(), items.person())
    title = items.title(form.title)
    names = {f"name_{place}": person.name for place, person in enumerate(people, start=1)}
    names |= {f"email_{place}": person.email for place, person in enumerate(people, start=1)}
    return _Plan(
        form=form,
        title=title,
        people=people,
        names=names,
        head=pick(rng, form.heads).format(title=title, **names),
        number=PlantedItem(kind=number, value=items.number(number)) if number else None,
    )


def _compose(plan: _Plan, *, products: tuple[str, ...], target: tuple[int, int], rng: np.random.Generator) -> _Body:
    chosen = [plan.form.facts[int(i)] for i in rng.permutation(len(plan.form.facts))[:N_FACTS]]
    facts = tuple(
        Fact(question=template.question.format(reference=plan.title), answer=draw_answer(template, products, rng=rng))
        for template in chosen
    )
    sentences = [template.sentence.format(answer=fact.answer) for template, fact in zip(chosen, facts, strict=True)]
    if plan.number is not None and plan.number.kind in NUMBER_KINDS:
        carrier = pick(rng, plan.form.carriers[plan.number.kind])
        sentences.append(carrier.format(value=plan.number.value, **plan.names))
    sentences += _fillers(plan.form, sentences, target=target, rng=rng)
    return _Body(sentences=tuple(sentences[int(i)] for i in rng.permutation(len(sentences))), facts=facts)


def _fillers(form: Form, sentences: list[str], *, target: tuple[int, int], rng: np.random.Generator) -> list[str]:
    lowest, highest = target
    aim = int(rng.integers(lowest, highest + 1))
    taken = sum(len(sentence.split()) for sentence in sentences)
    chosen: list[str] = []
    for i in rng.permutation(len(form.fillers)):
        words = len(form.fillers[int(i)].split())
        if taken < aim and taken + words <= highest:
            chosen.append(form.fillers[int(i)].format())
            taken += words
    return chosen


def _draft(plan: _Plan, body: _Body) -> Draft:
    text = plan.head + " ".join(body.sentences)
    people = [
        item
        for person in plan.people
        for item in (
            PlantedItem(kind="person_name", value=person.name),
            PlantedItem(kind="email", value=person.email),
        )
        if item.value in text
    ]
    numbers = [] if plan.number is None else [plan.number]
    return Draft(
        title=plan.title,
        topic=plan.form.topic,
        head=plan.head,
        sentences=body.sentences,
        items=(*people, *numbers),
        facts=body.facts,
    )
