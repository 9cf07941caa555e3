"""Dates in the usual written forms of several languages."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from mragaudit.errors import DataError
from mragaudit.text import normalise

_MONTHS = 12
_ABBREVIATION_CHARS = 3
_CENTURY = 2000  # a year of two digits is read in this century
_NO_DIGIT = r"(?<![0-9])(?<![0-9][-/.])"
_YEAR_FIRST = re.compile(_NO_DIGIT + r"([0-9]{4}) ?[-/.年] ?([0-9]{1,2}) ?[-/.月] ?([0-9]{1,2})(?![0-9])(?![-/][0-9])")
_YEAR_LAST = re.compile(
    _NO_DIGIT + r"([0-9]{1,2}) ?[-/.] ?([0-9]{1,2}) ?[-/.] ?([0-9]{4}|[0-9]{2})(?![0-9])(?![-/][0-9])"
)
_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
MonthTable = tuple[tuple[str, ...], ...]


def iso_date(text: str) -> datetime.date | None:
    """Return the date if the text is one in the form 2026-03-14, else None."""
    match = _ISO.fullmatch(text)
    return _date(*map(int, match.groups())) if match else None


def month_table(months: Mapping[str, Sequence[str]]) -> MonthTable:
    """Return the month names per language, case folded and hashable; raises DataError unless 12 each."""
    for language, names in months.items():
        if len(names) != _MONTHS:
            raise DataError(f'language "{language}" has {len(names)} month names; months needs 12, January first')
    return tuple(
        tuple(normalise(name, casefold=True, drop_vowel_points=True).text.strip() for name in names)
        for _, names in sorted(months.items())
    )


def dates_in(text: str, *, months: MonthTable) -> set[datetime.date]:
    """Return the dates that a normalised, case-folded text may mean; 3/4/2026 means both of its readings."""
    found = {_date(int(year), int(month), int(day)) for year, month, day in _YEAR_FIRST.findall(text)}
    for first, second, year in _YEAR_LAST.findall(text):
        found.add(_date(_full_year(year), int(second), int(first)))
        found.add(_date(_full_year(year), int(first), int(second)))
    if months:
        found |= _named(text, months)
    return {date for date in found if date is not None}


def _named(text: str, months: MonthTable) -> set[datetime.date | None]:
    numbers = _month_numbers(months)
    found: set[datetime.date | None] = set()
    for pattern in _month_patterns(months):
        for match in pattern.finditer(text):
            for month in numbers.get(match["month"].rstrip("."), ()):
                found.add(_date(int(match["year"]), month, int(match["day"])))
    return found


def _full_year(year: str) -> int:
    return int(year) if len(year) > 2 else _CENTURY + int(year)  # noqa: PLR2004 - the digits of a short year


def _date(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day)
    except ValueError:  # 31 February, or a month 14 that is a day: no date in this reading
        return None


@lru_cache(maxsize=32)
def _month_numbers(months: MonthTable) -> dict[str, frozenset[int]]:
    """Return month numbers by name and, where the name is Latin, by its first three letters and more."""
    numbers: dict[str, set[int]] = {}
    for names in months:
        for number, entry in enumerate(names, 1):
            for name in filter(None, re.split(r" ?[/|] ?", entry)):
                shortest = _ABBREVIATION_CHARS if name[0] < "ɐ" else len(name)
                for length in range(min(shortest, len(name)), len(name) + 1):
                    numbers.setdefault(name[:length], set()).add(number)
    return {name: frozenset(found) for name, found in numbers.items()}


@lru_cache(maxsize=32)
def _month_patterns(months: MonthTable) -> tuple[re.Pattern[str], ...]:
    names = sorted(_month_numbers(months), key=lambda name: (-len(name), name))
    month = rf"(?P<month>(?:{'|'.join(map(re.escape, names))})\.?)(?![^\W\d_])"
    day = r"(?<![0-9.,:/-])(?P<day>[0-9]{1,2})(?:st|nd|rd|th|er|\.|º|ª|°)?"
    year = r"(?P<year>[0-9]{4})(?![0-9])"
    link = r"(?: ?[,،] ?| ?- ?| (?:of|de|del|di|van|من|mwezi wa|ya) | )"
    return (
        re.compile(rf"{day}{link}?{month}{link}?(?:عام |mwaka |سنة )?{year}"),
        re.compile(rf"(?<![^\W\d_]){month} ?(?:the )?{day}{link}{year}"),
        re.compile(rf"(?<![0-9]){year}{link}{month}{link}{day}(?![0-9])"),
    )
