"""CSV cells that a spreadsheet must not take for formulas."""

from __future__ import annotations

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def neutralise_cell(text: str) -> str:
    """Return the cell with a leading apostrophe where a spreadsheet would evaluate it, else unchanged.

    Cells that begin with = + - @, tab or carriage return are evaluated by spreadsheets (OWASP,
    "CSV Injection").
    A plain finite number (`-0.125`, `+3`, `-1e-05`) is no formula and stays as it is.
    """
    if not text.startswith(_FORMULA_STARTS) or _is_number(text):
        return text
    return f"'{text}"


def _is_number(text: str) -> bool:
    if not set(text) <= set("0123456789+-.eE"):
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True
