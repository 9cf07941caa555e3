"""People, numbers and titles of the grid's corpora: no item comes twice, and none is anybody's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mragaudit.corpus.draws import draw_until, fill_pattern, pick
from mragaudit.corpus.grid_templates import NameLists, NumberKind, TitleTemplate
from mragaudit.corpus.values import DOMAINS, ID_AREAS, PHONE_FORMATS

REMEDY = "ask for fewer documents in a realisation"

# The North American Numbering Plan keeps areas whose middle digit is 9 for a longer format: none was ever issued.
UNISSUED_PHONE_AREAS = tuple(100 * first + 90 + last for first in range(2, 10) for last in range(10))
ORDINARY_PHONE_AREAS = tuple(
    area
    for area in range(201, 990)
    if area not in UNISSUED_PHONE_AREAS and area % 100 != 11  # noqa: PLR2004  # N11: services
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """A made-up person with an address at a domain that is kept for examples."""

    name: str
    email: str


class ItemSource:
    """Draws the ordinary items and titles of one realisation; none comes twice or contains another."""

    def __init__(self, *, names: NameLists, rng: np.random.Generator) -> None:
        self._names = names
        self._rng = rng
        self._taken: set[str] = set()
        self._surnames: list[str] = []

    def person(self) -> Person:
        """Return a new person; raises ConfigError when no surname is left.

        The address holds the surname and an initial, so that no spelling of the name stands inside it.
        """
        given = pick(self._rng, self._names.given_names)
        surname = draw_until(self._surname, self._usable_surname, what="surname", remedy=REMEDY)
        self._surnames.append(surname.casefold())
        return Person(name=f"{given} {surname}", email=self._email(given[0].lower(), surname.lower()))

    def number(self, kind: NumberKind) -> str:
        """Return a new phone number or id; raises ConfigError when none is left."""
        areas = ORDINARY_PHONE_AREAS if kind == "phone" else ID_AREAS
        return draw_until(lambda: draw_number(kind, areas, rng=self._rng), self._is_new, what=kind, remedy=REMEDY)

    def title(self, template: TitleTemplate) -> str:
        """Return a new title; raises ConfigError when none is left."""
        if template.pattern:
            return draw_until(
                lambda: fill_pattern(self._rng, template.pattern), self._is_new, what="title", remedy=REMEDY
            )
        project = draw_until(self._project, self._is_new, what="project name", remedy=REMEDY)
        return f"{project} {pick(self._rng, template.endings)}"

    def _surname(self) -> str:
        return pick(self._rng, self._names.surname_stems) + pick(self._rng, self._names.surname_endings)

    def _usable_surname(self, surname: str) -> bool:
        folded = surname.casefold()
        return not any(folded in other or other in folded for other in self._surnames)

    def _email(self, initial: str, surname: str) -> str:
        forms = (f"{initial}.{surname}", f"{surname}.{initial}", f"{initial}{surname}")
        return f"{pick(self._rng, forms)}@{pick(self._rng, DOMAINS)}"

    def _project(self) -> str:
        return f"{pick(self._rng, self._names.project_first)} {pick(self._rng, self._names.project_second)}"

    def _is_new(self, value: str) -> bool:
        """Return whether a value is new, numbers in any grouping, and keep it."""
        digits = "".join(filter(str.isdecimal, value))
        key = digits[-10:] if len(digits) > 8 else value  # noqa: PLR2004  # a phone number with and without +1
        new = key not in self._taken
        self._taken.add(key)
        return new


def draw_number(kind: NumberKind, areas: Sequence[int], *, rng: np.random.Generator) -> str:
    """Return a number with one of the areas: a phone number of those kept for fiction, or a nine-digit id."""
    if kind == "phone":
        area, line = pick(rng, areas), int(rng.integers(100, 200))
        shape = pick(rng, PHONE_FORMATS)
        return shape.format(area=area, rest=f"555-0{line}", dotted=f"555.0{line}")
    mark = pick(rng, ("-", ""))
    return f"{pick(rng, areas):03d}{mark}{rng.integers(1, 100):02d}{mark}{rng.integers(1, 10000):04d}"
