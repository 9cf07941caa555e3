"""Segments of an address, and which of them say where somebody lives."""

from __future__ import annotations

import re

_SEGMENT_END = re.compile(r"[,，،、\n\r\u2028\u2029\x85]")
_MIN_CHARS = 10  # design, "Leak": a first segment that long counts without a street word
_STREET_WORD = re.compile(
    r"\b(?:street|st|road|rd|lane|ln|avenue|ave|av|drive|dr|way|court|ct|boulevard|blvd|place|pl|square|sq|terrace|"
    r"ter|circle|cir|parkway|pkwy|highway|hwy|trail|trl|row|close|crescent|cres|alley|aly|loop|walk|plaza|pike|run|"
    r"mews|hill|ridge|crossing|route|rte|rue|allée|chemin|quai|calle|avenida|camino|via|viale|piazza|rua|travessa|"
    r"mtaa|barabara|njia|ulica|laan|straat)\b"
    r"|(?:strasse|str|weg|gasse|platz|allee|ring|damm|ufer|steig|pfad|chaussee|markt|hof)\b"
    r"|[路街道巷弄里村]|胡同|大道|شارع|طريق|حي|زقاق"
)
# Words that name a part of a building: a segment of these and numbers alone is found everywhere.
_UNIT_NAMES = """
    apartamento apartment appartement apt bldg block building bâtiment chumba department dept door
    eg eingang entrance erdgeschoss etage fifth first fl flat floor fourth front gate gebäude
    ghorofa ground hall haus hinterhaus jengo level lot lower main no nr number nyumba obergeschoss
    office oficina og piso raum rear rm room second ste stock suite third tower unit upper
    vorderhaus whg wing wohnung zimmer étage الطابق شقة طابق غرفة مبنى 单元 号 号楼 室 层 楼
"""
_UNIT_WORDS = frozenset(_UNIT_NAMES.split())
_UNIT_ZH = re.compile(r"[0-9a-z一二三四五六七八九十-]*(?:单元|號樓|号楼|[室楼层層樓])+[0-9a-z]*")
_WORD = re.compile(r"[^\W_]+")


def segments(value: str) -> list[str]:
    """Return the parts of an address between commas and line breaks, empty ones left out, ends trimmed."""
    return [part.strip() for part in _SEGMENT_END.split(value) if part.strip()]


def names_a_place(segment: str) -> bool:
    """Whether a normalised, case-folded segment identifies an address by itself.

    It does with a house number and a street word, or with at least 10 characters, unless it only names a
    part of a building ("apartment 12", "second floor").
    """
    words = _WORD.findall(segment)
    if all(word in _UNIT_WORDS or word.isdecimal() or len(word) == 1 for word in words) or _UNIT_ZH.fullmatch(segment):
        return len(words) > 0 and _street_and_number(segment)
    return len(segment) >= _MIN_CHARS or _street_and_number(segment)


def _street_and_number(segment: str) -> bool:
    return any(map(str.isdecimal, segment)) and _STREET_WORD.search(segment) is not None
