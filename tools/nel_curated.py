"""Make tests/golden/nel/curated.jsonl, the set on which recall and specificity of NEL_strict are measured.

With `--seed 20261201 --without curated.jsonl --out held_out.jsonl` it draws further positives with other names, on
which no rule was mended.

Names and addresses come from Faker, carriers and hard negatives from tests/golden/nel/sources. Nothing of it is read
by the classifier. The file is frozen: make it anew only to see that the same bytes come out.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import typer
import yaml
from faker import Faker

FOLDER = Path(__file__).parents[1] / "tests" / "golden" / "nel"
LANGUAGES = ("en", "zh", "de", "ar", "sw")
SEED = 20261130
ZERO_WIDTH = "\u200b"
_PLAIN = {
    "label": 5, "honorific": 6, "bold": 3, "code": 2, "zero_width": 3, "glued": 4,
}  # fmt: skip
_LATIN_KINDS = {"plain": 28, **_PLAIN, "full_width": 2, "family_first": 3, "double": 3, "particle": 3}
NAME_KINDS = {
    "en": _LATIN_KINDS,
    "de": _LATIN_KINDS,
    "sw": _LATIN_KINDS,
    "zh": {"plain": 24, "latin": 8, **_PLAIN, "compound": 4, "transliterated": 3},
    "ar": {"plain": 22, "latin": 8, **_PLAIN, "vowel_points": 4, "particle": 5},
}
EMAIL_KINDS = {
    "plain": 26, "plus": 4, "subdomain": 4, "angle": 5, "markdown": 4, "bold": 3, "code": 3, "glued": 4,
    "zero_width": 3, "full_width": 3, "upper": 3,
}  # fmt: skip
PARTICLES = {
    "en": ["{first} van {last}", "{first} O'{last}", "{first} de {last}"],
    "de": ["{first} von {last}", "{first} von der {last}", "{first} zu {last}"],
    "sw": ["{first} bin {other}", "{first} wa {last}", "{first} binti {other}"],
    "ar": [
        "{first} بن {other}",
        "{first} أبو {other}",
        "{first} بنت {other}",
        "{first} عبد الرحيم",
        "{first} آل {other}",
    ],
}  # fmt: skip
COMPOUND = ["欧阳", "司马", "诸葛", "上官"]
TRANSLITERATED = ["玛丽亚·冈萨雷斯", "约翰·卡特", "安娜·诺瓦克"]
GLUED = ['("{value}")', "{value};", "—{value}—", "{value}: "]


@dataclass(kw_only=True)
class Maker:
    """Draws the positives of one language; no name and no address comes twice."""

    lang: str
    source: dict[str, Any]
    rng: np.random.Generator
    seed: int
    taken: set[str] = field(default_factory=set)
    fakers: list[Faker] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Seed one generator a locale."""
        for offset, locale in enumerate(self.source["name_locales"]):
            self.fakers.append(Faker(locale))
            self.fakers[-1].seed_instance(self.seed + offset)
        self.latin = Faker("en_US")
        self.latin.seed_instance(self.seed + 99 + LANGUAGES.index(self.lang))

    def pick(self, values: list[str]) -> str:
        """Return one of the values."""
        return values[int(self.rng.integers(len(values)))]

    def new(self, make: Callable[[], str]) -> str:
        """Return a value that was not drawn before."""
        while (value := make()) in self.taken:
            pass
        self.taken.add(value)
        return value

    def faker(self) -> Faker:
        """Return the generator of one of the language's locales."""
        return self.fakers[int(self.rng.integers(len(self.fakers)))]

    def full_name(self, shape: str) -> str:
        """Return a new name; `shape` has the places first, last, other and last2."""

        def make() -> str:
            faker = self.faker()
            parts = {"first": faker.first_name(), "other": faker.first_name()}
            parts |= {"last": faker.last_name(), "last2": faker.last_name()}
            return shape.format(**parts)

        return self.new(make)

    def name(self, kind: str, number: int) -> str:
        """Return the name of a kind, as it stands in the text."""
        usual = "{last}{first}" if self.lang == "zh" else "{first} {last}"
        if kind == "particle":
            usual = PARTICLES[self.lang][number]
        elif kind == "transliterated":
            return TRANSLITERATED[number]
        shapes = {
            "family_first": "{last}, {first}",
            "double": "{first}-{other} {last}-{last2}",
            "compound": COMPOUND[number % len(COMPOUND)] + "{first}",
        }
        if kind == "latin":
            return self.new(lambda: f"{self.latin.first_name()} {self.latin.last_name()}")
        return distorted(self.full_name(shapes.get(kind, usual)), kind)

    def email(self, kind: str) -> str:
        """Return the address of a kind, as it stands in the text."""

        def make() -> str:
            local = self.faker().user_name()
            form = self.pick(["{local}", "{local}{n}", "{initial}.{local}", "{local}_{n}"])
            initial, number = "abcdehkmnrst"[self.rng.integers(12)], int(self.rng.integers(10, 100))
            local = form.format(local=local, n=number, initial=initial)
            domain = self.pick(self.source["email_domains"])
            local += "+news" if kind == "plus" else ""
            return f"{local}@{'mail.' if kind == 'subdomain' else ''}{domain}"

        return distorted(self.new(make), kind)


def distorted(value: str, kind: str) -> str:
    """Return the value in the spelling of its kind."""
    middle = len(value) // 2
    if kind == "zero_width":
        return value[:middle] + ZERO_WIDTH + value[middle:]
    if kind == "full_width":
        return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in value)
    if kind == "vowel_points":
        return re.sub(r"(?<!\S)(\S)", "\\1\u064e", value)
    return value.upper() if kind == "upper" else value


def dressed(value: str, kind: str, number: int) -> str:
    """Return what stands in the carrier in the value's place."""
    forms = {
        "bold": "**{value}**",
        "code": "`{value}`",
        "angle": "<{value}>",
        "markdown": "[{value}](mailto:{value})",
        "glued": GLUED[number % len(GLUED)],
    }
    return forms.get(kind, "{value}").format(value=value)


def name_text(maker: Maker, kind: str, *, number: int, value: str) -> str:
    """Return the sentence around a name."""
    source = maker.source
    if kind == "label":
        return str(source["label"].format(value=value))
    if kind == "honorific":
        titled = source["honorifics"][number % len(source["honorifics"])].format(value=value)
        return str(source["honorific_carrier"].format(value=titled))
    return maker.pick(source["name_carriers"]).format(value=dressed(value, kind, number))


def positives(maker: Maker) -> Iterator[dict[str, object]]:
    """Yield the rows with an item in them."""
    for kind, count in NAME_KINDS[maker.lang].items():
        for number in range(count):
            value = maker.name(kind, number)
            yield row("PERSON_NAME", kind, text=name_text(maker, kind, number=number, value=value), value=value)
    for kind, count in EMAIL_KINDS.items():
        for number in range(count):
            value = maker.email(kind)
            text = maker.pick(maker.source["email_carriers"]).format(value=dressed(value, kind, number))
            yield row("EMAIL_REAL", kind, text=text, value=value)


def negatives(source: dict[str, Any], lookalikes: dict[str, list[str]]) -> Iterator[dict[str, object]]:
    """Yield the rows in which no item of the type stands."""
    for kind, texts in source["name_negatives"].items():
        for text in texts:
            yield row("PERSON_NAME", kind, text=text, value=None)
    carrier = source["email_negatives"]["carrier"]
    for kinds in (lookalikes, source["email_negatives"]["own"]):
        for kind, values in kinds.items():
            for value in values:
                yield row("EMAIL_REAL", kind, text=carrier.replace("{value}", value), value=None)


def row(item_type: str, kind: str, *, text: str, value: str | None) -> dict[str, object]:
    """Return one row; the span is half-open, in code points, None for a negative."""
    start = None if value is None else text.index(value)
    end = None if start is None or value is None else start + len(value)
    return {"type": item_type, "positive": value is not None, "kind": kind, "text": text, "start": start, "end": end}


def rows(*, seed: int, taken: set[str]) -> Iterator[dict[str, object]]:
    """Yield the set, language by language, with ids; without negatives where values are `taken` by another set."""
    lookalikes = yaml.safe_load((FOLDER / "sources" / "lookalikes.yaml").read_text(encoding="utf-8"))
    for lang in LANGUAGES:
        source = yaml.safe_load((FOLDER / "sources" / f"{lang}.yaml").read_text(encoding="utf-8"))
        rng = np.random.default_rng([seed, LANGUAGES.index(lang)])
        maker = Maker(lang=lang, source=source, rng=rng, seed=seed, taken=set(taken))
        fresh = negatives(source, lookalikes) if not taken else ()
        for number, made in enumerate([*positives(maker), *fresh]):
            yield {"id": f"{lang}-{number:03d}", "lang": lang, **made}


def values(path: Path) -> set[str]:
    """Return the values of a set that was made before, in their plain spelling."""
    listed = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    spelled = (made["text"][made["start"] : made["end"]] for made in listed if made["positive"])
    return {unicodedata.normalize("NFKC", value).replace(ZERO_WIDTH, "").replace("\u064e", "") for value in spelled}


def main(*, out: Path = FOLDER / "curated.jsonl", seed: int = SEED, without: Path | None = None) -> None:
    """Write the set, one JSON object a line."""
    taken = values(without) if without else set()
    lines = [json.dumps(made, ensure_ascii=False) for made in rows(seed=seed, taken=taken)]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    typer.echo(f"{out}: {len(lines)} rows")


if __name__ == "__main__":
    typer.run(main)
