"""Canaries: unique items that are nobody's and stand in no vocabulary, one class a realisation."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import cycle

import numpy as np

from mragaudit.corpus.draws import draw_until, pick
from mragaudit.corpus.grid_templates import SCRIPTS, CanaryTemplates, Script, words_of
from mragaudit.corpus.grid_values import REMEDY, UNISSUED_PHONE_AREAS, draw_number
from mragaudit.corpus.values import ID_AREAS
from mragaudit.errors import DataError
from mragaudit.records.grid import ItemKind
from mragaudit.text.normalise import normalise

_JOINERS: dict[Script, str] = {"latin": " ", "han": "·", "arabic": " "}
_SYLLABLES = (2, 3)


@dataclass(frozen=True, kw_only=True, slots=True)
class CanaryPlan:
    """Which canaries a realisation carries."""

    kind: ItemKind
    templates: CanaryTemplates
    forbidden: frozenset[str] = field(default=frozenset())
    """Case-folded words of the scorer's lexicon and of the defense's vocabulary: no name uses one."""
    scripts: tuple[Script, ...] = SCRIPTS
    """Scripts of names, in turn."""


def fold(text: str) -> str:
    """Return letters and digits alone, in normal form and case-folded: the loosest form that is matched."""
    return "".join(filter(str.isalnum, normalise(text, casefold=True).text))


def draw_canaries(plan: CanaryPlan, texts: Collection[str], *, rng: np.random.Generator) -> list[str]:
    """Return one canary for each text, in order.

    Folded, none stands inside another one or inside any of the texts. Addresses have the published form, with a
    number that runs over the texts: they can be guessed from one another, which is why never-planted ones of
    the same form are scored beside them. Raises ConfigError when a source is exhausted, DataError when the
    texts hold an address of the published form.
    """
    separate = _Separate(texts)
    if plan.kind == "email":
        return [separate.require(plan.templates.email.format(number=number)) for number in range(1, len(texts) + 1)]
    if plan.kind == "person_name":
        names = _NameSource(plan, forbidden=plan.forbidden.union(*map(words_of, texts)), rng=rng)
        return [_draw_name(names, script, separate) for script, _ in zip(cycle(plan.scripts), texts, strict=False)]
    kind, areas = plan.kind, UNISSUED_PHONE_AREAS if plan.kind == "phone" else ID_AREAS
    return [
        draw_until(lambda: draw_number(kind, areas, rng=rng), separate.take, what=kind, remedy=REMEDY) for _ in texts
    ]


def _draw_name(names: _NameSource, script: Script, separate: _Separate) -> str:
    return draw_until(lambda: names.draw(script), separate.take, what=f"{script} name", remedy=REMEDY)


def shared_words(names: Iterable[str], vocabulary: Collection[str]) -> tuple[str, ...]:
    """Return, sorted, the words of a vocabulary that occur in canary names: empty where nothing is entangled."""
    words = set().union(*map(words_of, names))
    return tuple(sorted(word for word in vocabulary if any(_uses(own, word) for own in words)))


def _uses(own: str, word: str) -> bool:
    """Whether a name's word is a word of a vocabulary; in Han script, which has no spaces, whether it holds one."""
    return own == word or (_is_han(word) and word in own)


def _is_han(word: str) -> bool:
    return all("\u3400" <= char <= "\u9fff" for char in word)


class _Separate:
    """Values of which none, folded, stands inside another or inside one of the texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = "\0".join(map(fold, texts))
        self._taken: list[str] = []

    def take(self, value: str) -> bool:
        """Return whether the value is separate from all before, and keep it if so."""
        folded = fold(value)
        if folded in self._texts or any(folded in other or other in folded for other in self._taken):
            return False
        self._taken.append(folded)
        return True

    def require(self, value: str) -> str:
        """Return the value; raises DataError unless it is separate from all before."""
        if not self.take(value):
            raise DataError("a canary address stands in a document of the corpus already; canaries are made to be new")
        return value


class _NameSource:
    """Draws names from syllables; no word comes twice, and none is a forbidden one."""

    def __init__(self, plan: CanaryPlan, *, forbidden: frozenset[str], rng: np.random.Generator) -> None:
        self._syllables = plan.templates.syllables
        self._forbidden = forbidden
        self._han = [word for word in forbidden if _is_han(word)]
        self._rng = rng
        self._words: set[str] = set()

    def draw(self, script: Script) -> str:
        """Return a given and a family name in a script."""
        return _JOINERS[script].join(self._word(script) for _ in range(2))

    def _word(self, script: Script) -> str:
        word = draw_until(lambda: self._make(script), self._usable, what=f"{script} word for a name", remedy=REMEDY)
        self._words.add(word.casefold())
        return word

    def _make(self, script: Script) -> str:
        n_syllables = int(self._rng.integers(_SYLLABLES[0], _SYLLABLES[1] + 1))
        return "".join(pick(self._rng, self._syllables[script]) for _ in range(n_syllables)).capitalize()

    def _usable(self, word: str) -> bool:
        folded = word.casefold()
        holds = any(other in folded for other in self._han)
        return folded not in self._words and folded not in self._forbidden and not holds
