"""Forms in which a target may be asked to write, and how an attacker reads them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass

READ_CHARS = 20_000
"""How much of one reply is read."""
_GAP, _SLASH = "/", "//"
_SPELLED = re.compile(r"(?<!\S)(?:\S ){3,}\S(?!\S)|(?<![^\s])(?:[^\s-]-){3,}[^\s-](?!\S)")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC = "абцдефгхийклмнопщрстувшжыз"
_TO_CYRILLIC = str.maketrans(_LATIN + _LATIN.upper(), _CYRILLIC + _CYRILLIC.upper())
_TO_LATIN = str.maketrans(_CYRILLIC + _CYRILLIC.upper(), _LATIN + _LATIN.upper())


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoding:
    """One form of writing."""

    name: str
    lossless: bool
    """Whether `decode` gives back any text that was written so."""
    encode: Callable[[str], str]
    decode: Callable[[str], str]
    read: Callable[[str], list[str]]
    """Texts that a reply may hold in this form, among other words."""


def readings(reply: str, encoding: Encoding) -> list[str]:
    """Return the distinct texts that the encoding finds in a reply, none that the reply holds as they are."""
    shown = reply[:READ_CHARS]
    return [text for text in dict.fromkeys(encoding.read(shown)) if text.strip() and text not in reply]


def _spell(text: str) -> str:
    return " ".join({" ": _GAP, "/": _SLASH}.get(char, char) for char in text)


def _unspell(text: str) -> str:
    """Return the text of single characters with a space between; a slash between two is a space."""
    return "".join({_GAP: " ", _SLASH: "/"}.get(piece, piece) for piece in text.split(" "))


def _read_spelled(reply: str) -> list[str]:
    """Return the runs of single characters with spaces or hyphens between, and the reply with all of them joined."""
    joined = _SPELLED.sub(lambda match: _joined(match[0]), reply)
    return [*(_joined(run) for run in _SPELLED.findall(reply)), joined]


def _joined(run: str) -> str:
    return _unspell(run) if " " in run else run.replace("-", "")


def _reverse(text: str) -> str:
    return text[::-1]


def _read_reversed(reply: str) -> list[str]:
    """Return the reply backwards as a whole, and with each word backwards in its place."""
    return [reply[::-1], " ".join(word[::-1] for word in reply.split())]


def _to_base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")


def _from_base64(text: str) -> str:
    return base64.b64decode(text, validate=True).decode("utf-8", "surrogatepass")


def _read_base64(reply: str) -> list[str]:
    """Return what decodes to text; padding that is missing is put back, other runs are no base64."""
    found = []
    for run in _BASE64.findall(reply):
        bare = run.rstrip("=")
        try:
            found.append(_from_base64(bare + "=" * (-len(bare) % 4)))
        except (binascii.Error, UnicodeDecodeError):
            continue  # an ordinary long word
    return [text for text in found if text.isprintable()]


def _to_cyrillic(text: str) -> str:
    return text.translate(_TO_CYRILLIC)


def _from_cyrillic(text: str) -> str:
    return text.translate(_TO_LATIN)


ENCODINGS = (
    Encoding(name="spelled", lossless=True, encode=_spell, decode=_unspell, read=_read_spelled),
    Encoding(name="reversed", lossless=True, encode=_reverse, decode=_reverse, read=_read_reversed),
    Encoding(name="base64", lossless=True, encode=_to_base64, decode=_from_base64, read=_read_base64),
    # A model writes sounds, not letter for letter; and Cyrillic of the original would be read as Latin.
    Encoding(
        name="cyrillic",
        lossless=False,
        encode=_to_cyrillic,
        decode=_from_cyrillic,
        read=lambda reply: [_from_cyrillic(reply)],
    ),
)
