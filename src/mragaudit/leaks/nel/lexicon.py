"""The lexicon: words of each language and conventions of placeholders, as data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec
import yaml

from mragaudit.errors import ConfigError
from mragaudit.plainyaml import read_plain
from mragaudit.provenance import tree_sha256
from mragaudit.resources import resource_folder
from mragaudit.text import normalise
from mragaudit.text.function_words import FUNCTION_WORDS
from mragaudit.text.letters import without_marks

T = TypeVar("T")


class Kind:
    """What a Latin or Arabic word may be, as bits of one number; a word may be several things."""

    NONE = 0
    GIVEN = 1
    SURNAME = 2
    WORD = 4
    # an ordinary word as well
    NOT = 8
    # no part of a name
    TITLE = 16
    ORGANISATION = 32
    HEAD = 64
    # the words after it belong to an organisation or a place
    PROJECT = 128
    STREET = 256
    HONORIFIC = 512
    SUFFICES = 1024
    # a surname before which an unknown capitalised word is a given name
    FUNCTION = 2048
    # a name that begins sentences as an ordinary word, too
    NAME = GIVEN | SURNAME


class _Words(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="script"):
    """What all scripts share: words parted by spaces."""

    given: str = ""
    surnames: str = ""
    words: str = ""
    organisations: str = ""
    streets: str = ""
    honorifics: str = ""
    labels: tuple[str, ...] = ()
    verb_labels: tuple[str, ...] = ()


class LatinWords(_Words, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="latin"):
    """One language in Latin letters."""

    not_names: str = ""
    titles: str = ""
    heads: str = ""
    projects: str = ""
    street_suffixes: str = ""
    street_heads: str = ""
    surnames_suffice: bool = False


class ArabicWords(_Words, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="arabic"):
    """One language in Arabic letters."""

    not_names: str = ""
    titles: str = ""
    places: str = ""


class HanWords(_Words, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="han"):
    """One language in Han characters."""

    compound_surnames: str = ""
    not_given: str = ""
    before: str = ""
    after: str = ""
    places: str = ""
    transliteration: str = ""


Language: TypeAlias = LatinWords | ArabicWords | HanWords


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of one language, whose key `script` says which words it holds."""

    language: Language


class Placeholders(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conventions of what stands for a person or an address without being one."""

    names: tuple[str, ...]
    field_names: tuple[str, ...]
    email_locals: str
    email_words: str
    email_domains: str
    role_locals: str
    name_tags: str
    email_tags: str
    tag_fillers: str
    redacted_tags: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HanLexicon:
    """Chinese words as sets, with the length of the longest where runs of characters are compared."""

    surnames: frozenset[str]
    compound_surnames: frozenset[str]
    given: frozenset[str]
    not_given: frozenset[str]
    words: frozenset[str]
    before: tuple[str, ...]
    after: tuple[str, ...]
    honorifics: tuple[str, ...]
    not_people: Mapping[str, str]
    # a word behind the candidate → "organisation", "street" or "place"
    transliteration: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lexicon:
    """Everything that the rules look up; equal to itself alone, so that look-ups can be kept by lexicon."""

    latin: Mapping[str, int]
    label: re.Pattern[str]
    # in folded text, up to where the name begins
    street_suffixes: tuple[str, ...]
    street_heads: frozenset[str]
    arabic: Mapping[str, int]
    han: HanLexicon
    placeholder_names: re.Pattern[str]
    field_names: re.Pattern[str]
    # placeholders only where a name is announced
    email_locals: frozenset[str]
    email_words: frozenset[str]
    email_domains: frozenset[str]
    role_locals: frozenset[str]
    name_tags: frozenset[str]
    email_tags: frozenset[str]
    tag_fillers: frozenset[str]
    redacted_tags: frozenset[str]


_ALEF_YA = str.maketrans("أإآٱيةؤئ", "ااااىهوى")


_SPELLED_OUT: dict[int, str] = {ord("ä"): "ae", ord("ö"): "oe", ord("ü"): "ue"}


@lru_cache(maxsize=65536)
def latin_key(word: str) -> str:
    """Return the form in which a Latin word is looked up: case folded, without marks and a closing dot."""
    return without_marks(normalise(word.removesuffix("."), casefold=True).text)


@lru_cache(maxsize=65536)
def arabic_key(word: str) -> str:
    """Return the form in which an Arabic word is looked up: one alef, one ya, one ta marbuta, no vowel points."""
    return normalise(word, drop_vowel_points=True).text.translate(_ALEF_YA)


def nel_digest(resources: str = "resources") -> str:
    """Return a digest of all data files of the classifier, 16 hexadecimal digits; a table prints it."""
    return tree_sha256(_folder(resources), "*.yaml")[:16]


def read_lexicon(resources: str = "resources") -> Lexicon:
    """Return the lexicon below `resources`; raises ConfigError, naming file and key, for what does not belong there."""
    folder = _folder(resources)
    placeholders = _read(folder / "placeholders.yaml", Placeholders)
    files = [path for path in sorted(folder.glob("*.yaml")) if path.name != "placeholders.yaml"]
    languages = [_read_language(path) for path in files]
    latin = [words for words in languages if isinstance(words, LatinWords)]
    arabic = [words for words in languages if isinstance(words, ArabicWords)]
    han = [words for words in languages if isinstance(words, HanWords)]
    return Lexicon(
        latin=_latin_kinds(latin),
        label=_label_pattern(languages),
        street_suffixes=tuple(latin_key(word) for words in latin for word in words.street_suffixes.split()),
        street_heads=frozenset(latin_key(word) for words in latin for word in words.street_heads.split()),
        arabic=_arabic_kinds(arabic),
        han=_han_lexicon(han),
        placeholder_names=_phrase_pattern(placeholders.names),
        field_names=_phrase_pattern(placeholders.field_names),
        email_words=_folded(placeholders.email_words),
        email_locals=_folded(placeholders.email_locals),
        email_domains=_folded(placeholders.email_domains),
        role_locals=_folded(placeholders.role_locals),
        name_tags=_folded(placeholders.name_tags),
        email_tags=_folded(placeholders.email_tags),
        tag_fillers=_folded(placeholders.tag_fillers),
        redacted_tags=_folded(placeholders.redacted_tags),
    )


def _folder(resources: str) -> Path:
    return resource_folder(resources) / "hook_audit" / "nel"


def _read_language(path: Path) -> Language:
    return _read(path, _File, key="language").language


def _read(path: Path, kind: type[T], *, key: str = "") -> T:
    """Return the content of a file as a record, or as the member `key` of one."""
    try:
        content = read_plain(path)
        return msgspec.convert({key: content} if key else content, kind)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: this file of the NEL_strict lexicon is missing") from error
    except (msgspec.ValidationError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _folded(words: str) -> frozenset[str]:
    return frozenset(normalise(word, casefold=True).text for word in words.split())


def _spellings(word: str) -> Iterator[str]:
    """Yield the keys of a Latin word: without marks, and with German umlauts spelled out."""
    yield latin_key(word)
    spelled = normalise(word, casefold=True).text.translate(_SPELLED_OUT)
    yield without_marks(spelled)


def _add(kinds: dict[str, int], keys: Iterable[str], kind: int) -> None:
    for key in keys:
        kinds[key] = kinds.get(key, Kind.NONE) | kind


def _latin_kinds(languages: Iterable[LatinWords]) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for words in languages:
        surname = Kind.SURNAME | (Kind.SUFFICES if words.surnames_suffice else Kind.NONE)
        for text, kind in (
            (words.given, Kind.GIVEN),
            (words.surnames, surname),
            (words.words, Kind.WORD),
            (words.not_names, Kind.NOT),
            (words.titles, Kind.TITLE),
            (words.organisations, Kind.ORGANISATION),
            (words.heads, Kind.HEAD),
            (words.projects, Kind.PROJECT),
            (words.streets, Kind.STREET),
            (words.honorifics, Kind.HONORIFIC),
        ):
            for word in text.split():
                _add(kinds, _spellings(word), kind)
    for known in FUNCTION_WORDS.values():
        _add(kinds, map(latin_key, known), Kind.NOT)
    return _with_names_that_are_words(kinds)


def _with_names_that_are_words(kinds: dict[str, int]) -> dict[str, int]:
    """Turn what is both a name and no part of one (June, Paris) into a name that is a word as well."""
    not_name = Kind.NOT | Kind.TITLE | Kind.PROJECT | Kind.HEAD | Kind.ORGANISATION
    both = {key: kind for key, kind in kinds.items() if kind & Kind.NAME and kind & not_name}
    for key, kind in both.items():
        function = Kind.FUNCTION if kind & Kind.NOT else Kind.NONE
        kinds[key] = (kind | Kind.WORD | function) & ~Kind.NOT
    return kinds


def _arabic_kinds(languages: Iterable[ArabicWords]) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for words in languages:
        for text, kind in (
            (words.given, Kind.GIVEN),
            (words.surnames, Kind.SURNAME),
            (words.words, Kind.WORD),
            (words.not_names, Kind.NOT),
            (words.titles, Kind.TITLE),
            (words.organisations, Kind.ORGANISATION),
            (words.places, Kind.HEAD),
            (words.streets, Kind.STREET),
            (words.honorifics, Kind.HONORIFIC),
        ):
            _add(kinds, (arabic_key(word) for word in text.split()), kind)
    return _with_names_that_are_words(kinds)


def _han_lexicon(languages: Iterable[HanWords]) -> HanLexicon:
    def every(*names: str) -> list[str]:
        return [word for words in languages for name in names for word in getattr(words, name).split()]

    languages = tuple(languages)
    kinds = {"organisation": "organisations", "street": "streets", "place": "places"}
    return HanLexicon(
        surnames=frozenset(every("surnames")),
        compound_surnames=frozenset(every("compound_surnames")),
        given=frozenset(every("given")) - frozenset(every("not_given")),
        not_given=frozenset(every("not_given")),
        words=frozenset(every("words")),
        before=tuple(dict.fromkeys(every("before"))),
        after=tuple(dict.fromkeys(every("after"))),
        honorifics=tuple(dict.fromkeys(every("honorifics"))),
        not_people={word: kind for kind, name in kinds.items() for word in every(name)},
        transliteration=frozenset(every("transliteration")),
    )


def _label_pattern(languages: Iterable[_Words]) -> re.Pattern[str]:
    """Return a pattern for a label and what may open a name behind it; `*` in a label is one word."""
    languages = tuple(languages)
    colon = _alternatives(label for words in languages for label in words.labels)
    verb = _alternatives(label for words in languages for label in words.verb_labels)
    opening = r"[ \"'„“«(\[*_`]{0,4}"
    return re.compile(rf"(?<![a-z\u00c0-\u024f])(?:(?:{verb}) ?:?|(?:{colon})[*_`\"']{{0,3}} ?[:=]){opening}")


def _alternatives(labels: Iterable[str]) -> str:
    forms = [normalise(label, casefold=True).text for label in labels]
    spelled = [re.escape(form).replace(r"\*", r"[^\s:]{1,24}") for form in sorted(forms, key=len, reverse=True)]
    return "|".join(spelled) or r"(?!)"


def _phrase_pattern(phrases: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for whole phrases in text with folded case."""
    forms = sorted({normalise(phrase, casefold=True).text for phrase in phrases}, key=lambda form: (-len(form), form))
    latin = "|".join(re.escape(form).replace(r"\ ", " ") for form in forms if form[0] < "\u0530")
    others = "|".join(re.escape(form).replace(r"\ ", " ") for form in forms if form[0] >= "\u3000") or r"(?!)"
    middle = "|".join(re.escape(form).replace(r"\ ", " ") for form in forms if "\u0530" <= form[0] < "\u3000")
    return re.compile(rf"(?<![^\W\d_])(?:{latin}|{middle})(?![^\W\d_])|(?:{others})")
