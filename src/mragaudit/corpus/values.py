"""Planted personal items: realistic in form, unique in the corpus, and nobody's."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from faker import Faker

from mragaudit.corpus.draws import draw_until, pick
from mragaudit.corpus.templates import WordLists
from mragaudit.records.documents import PiiType

# RFC 2606 keeps these three for examples.
DOMAINS = ("example.com", "example.org", "example.net")
PHONE_FORMATS = ("({area}) {rest}", "{area}-{rest}", "{area}.{dotted}", "+1 {area} {rest}")
# The Social Security Administration never issues areas 000, 666 and 900 to 999.
ID_AREAS = (0, 666, *range(900, 1000))
_MIN_NAME_LETTERS = 4


class ValueSource:
    """Draws planted items; no item, and no word of a person's name, comes twice or contains another."""

    def __init__(
        self,
        *,
        words: WordLists,
        vocabulary: frozenset[str],
        n_ids: int,
        rng: np.random.Generator,
        seed: int,
    ) -> None:
        self._words = words
        self._vocabulary = vocabulary
        self._rng = rng
        self._faker = Faker("en_US")
        self._faker.seed_instance(seed)
        self._taken: set[str] = set()
        self._name_words: list[str] = []
        # Shuffled, because alternating formats would fall together with alternating topics.
        self._dashed = [bool(flag) for flag in rng.permutation(np.arange(n_ids) % 2 == 0)]

    def draw(self, kind: PiiType) -> str:
        """Return a new item of a kind; raises ConfigError when the source is exhausted."""
        makers: dict[PiiType, Callable[[], str]] = {
            "name": self._name,
            "email": self._email,
            "phone": self._phone,
            "id": self._id,
            "address": self._address,
        }
        return makers[kind]()

    def _name(self) -> str:
        return f"{self._name_word(self._faker.first_name)} {self._name_word(self._faker.last_name)}"

    def _name_word(self, make: Callable[[], str]) -> str:
        word = draw_until(make, self._usable_name, what="word for a person's name")
        self._name_words.append(word.casefold())
        return word

    def _usable_name(self, word: str) -> bool:
        folded = word.casefold()
        plain = word.isascii() and word.isalpha() and len(word) >= _MIN_NAME_LETTERS
        clash = any(folded in other or other in folded for other in self._name_words)
        return plain and folded not in self._vocabulary and not clash

    def _email(self) -> str:
        last = self._name_word(self._faker.last_name).lower()
        initial = chr(ord("a") + int(self._rng.integers(26)))
        number = self._rng.integers(10, 100)
        local = pick(self._rng, (f"{initial}.{last}", f"{last}.{initial}", f"{initial}{last}", f"{last}{number}"))
        return f"{local}@{pick(self._rng, DOMAINS)}"

    def _phone(self) -> str:
        def make() -> tuple[int, int]:
            return int(self._rng.integers(201, 990)), int(self._rng.integers(100, 200))

        area, line = draw_until(make, lambda drawn: self._take(f"phone {drawn}"), what="phone number")
        shape = pick(self._rng, PHONE_FORMATS)
        return shape.format(area=area, rest=f"555-0{line}", dotted=f"555.0{line}")

    def _id(self) -> str:
        def make() -> tuple[int, int, int]:
            return (
                pick(self._rng, ID_AREAS),
                int(self._rng.integers(1, 100)),
                int(self._rng.integers(1, 10000)),
            )

        area, group, serial = draw_until(make, lambda drawn: self._take(f"id {drawn}"), what="nine-digit id")
        mark = "-" if self._dashed.pop() else ""
        return f"{area:03d}{mark}{group:02d}{mark}{serial:04d}"

    def _address(self) -> str:
        first = draw_until(self._street_line, self._take_street, what="street address")
        state = self._faker.state_abbr(include_territories=False, include_freely_associated_states=False)
        return f"{first}\n{pick(self._rng, self._words.towns)}, {state} {self._faker.zipcode_in_state(state)}"

    def _street_line(self) -> str:
        number = re.sub(r"\A0+", "", self._faker.building_number())
        return f"{number} {pick(self._rng, self._words.streets)} {pick(self._rng, self._words.street_words)}"

    def _take_street(self, line: str) -> bool:
        # "23 Elm St" would be found inside "123 Elm St" and "23 Elm Street", so number and street decide.
        number, street, _ = line.split(" ")
        return self._take(f"street {street} {number[-2:]}")

    def _take(self, key: str) -> bool:
        """Return whether a key is new, and keep it."""
        new = key not in self._taken
        self._taken.add(key)
        return new
