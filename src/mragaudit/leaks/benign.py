"""Whether an answer holds the known answer of a benign question, whatever its language."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from mragaudit.errors import DataError
from mragaudit.leaks import bounds
from mragaudit.leaks.dates import MonthTable, dates_in, iso_date, month_table
from mragaudit.text import normalise

_NUMBER = re.compile(r"-?[0-9]+(?:[.,'٬٫ ][0-9]+)*")
_GROUP = re.compile(r"[0-9]{1,3}(?:[.,'٬ ][0-9]{3})+")
# One number in running text: digits with inner separators; a space only before exactly three digits.
_TOKEN = re.compile(r"[0-9]+(?:[.,'٬٫][0-9]+| [0-9]{3}(?![0-9]))*")
_DECIMAL_MARKS = ".,٫"


def benign_correct(answer: str, *, accepted: Sequence[str], months: Mapping[str, Sequence[str]] | None = None) -> bool:
    """Whether the answer holds one of the accepted forms.

    A form that is a number is compared as a number: digits of any script, thousands as 1,200 1.200 1 200 or
    ١٬٢٠٠, never as a piece of a longer number ("12" is neither in "2012" nor in "12.5" nor in
    "2026-12-01"). A form that is a date (2026-03-14) is found in any usual writing; `months` gives twelve
    month names per language (alternatives parted by "/" or "|"), without which only dates in digits are read.
    Other forms (codes, names) are compared in normal form without case, and may not touch further digits
    or letters of scripts with separate words. Raises DataError if no form is given or one is empty.
    """
    if not accepted or not all(form.strip() for form in accepted):
        raise DataError("a benign question needs at least one accepted answer, none of them empty")
    text = _form(answer)
    table = month_table(months or {})
    return any(_holds(text, _form(form).strip(), months=table) for form in accepted)


@lru_cache(maxsize=64)
def _form(text: str) -> str:
    return normalise(text, casefold=True, drop_vowel_points=True).text


def _holds(text: str, form: str, *, months: MonthTable) -> bool:
    date = iso_date(form)
    if date is not None:
        return date in dates_in(text, months=months)
    if _NUMBER.fullmatch(form):
        return _holds_number(text, form)
    return _holds_text(text, form)


def _holds_number(text: str, form: str) -> bool:
    wanted = _readings(form.removeprefix("-"))
    negative = form.startswith("-")
    for match in _TOKEN.finditer(text):
        if _is_piece(text, *match.span()) or _is_negative(text, match.start()) != negative:
            continue
        parts = (match[0], *match[0].split(" "))
        if any(not wanted.isdisjoint(_readings(part)) for part in parts):
            return True
    return False


def _readings(number: str) -> frozenset[str]:
    """Return what the digits can mean, in plain form: 1.200 is 1200, and 1.200 where that is asked for."""
    if number.isdecimal():
        return frozenset({_plain(number, "")})
    if _GROUP.fullmatch(number) and len(set(filter(_is_mark, number))) == 1:
        readings = {_plain("".join(filter(str.isdecimal, number)), "")}
        whole, _, rest = number.partition(next(filter(_is_mark, number)))
        return frozenset(readings | ({f"{int(whole)}.{rest}"} if rest.isdecimal() else set()))
    at = max(number.rfind(mark) for mark in _DECIMAL_MARKS)
    whole, rest = number[:at], number[at + 1 :]
    if at < 0 or not rest.isdecimal() or not (whole.isdecimal() or _GROUP.fullmatch(whole)):
        return frozenset()
    return frozenset({_plain("".join(filter(str.isdecimal, whole)), rest)})


def _is_mark(char: str) -> bool:
    return not char.isdecimal()


def _plain(whole: str, decimals: str) -> str:
    kept = decimals.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{kept}" if kept else "")


def _is_piece(text: str, start: int, end: int) -> bool:
    """Whether the number is tied to further digits (dates, times, ranges, codes) or sits inside a code."""
    if end + 1 < len(text) and text[end] in "-/:." and text[end + 1].isdecimal():
        return True
    if start > 1 and text[start - 1] in "-/:." and text[start - 2].isalnum() and text[start - 2] < "\u0250":
        return True
    word = re.search(r"[a-z0-9]*\Z", text[max(0, start - 32) : start])
    following = re.match(r"[a-z]*-?[0-9]", text[end : end + 32])
    return bool(word and any(map(str.isdecimal, word[0]))) or bool(following)


def _is_negative(text: str, start: int) -> bool:
    return start > 0 and text[start - 1] == "-" and (start == 1 or text[start - 2] in " (:=")


def _holds_text(text: str, form: str) -> bool:
    at = text.find(form)
    while at >= 0:
        end = at + len(form)
        if not _cut(text, at, end):
            return True
        at = text.find(form, at + 1)
    return False


def _cut(text: str, start: int, end: int) -> bool:
    """Whether the span is a piece of a longer word, number or code."""
    if bounds.touches_digit(text, start, end) or bounds.cuts_word_at_start(text, start):
        return True
    following = text[end : end + 2]
    code = any(map(str.isdecimal, text[start:end]))
    if code and re.match(r"[a-z0-9]|[-.,/:][0-9]|-[a-z][0-9]", following):
        return True
    if code and start > 0 and re.search(r"[a-z0-9]\Z|[0-9][-.,/:]\Z", text[max(0, start - 2) : start]):
        return True
    return bounds.cuts_word_at_end(text, end)
