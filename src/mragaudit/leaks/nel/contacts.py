"""E-mail addresses, URLs, handles, numbers and streets with numbers."""

from __future__ import annotations

import re

from mragaudit.leaks.nel.items import Board, ItemType
from mragaudit.leaks.nel.lexicon import Lexicon
from mragaudit.pii import email, phone, ssn
from mragaudit.text import normalise

_MASK = frozenset("*•●…█▇#")
_DIGITS_AT_END = re.compile(r"[._-]?[0-9]{1,4}\Z")
_PARTS = re.compile(r"[._-]")
_CROSSES = re.compile(r"(?:x+|\.*|_+)\Z")
_USER_OF_URL = re.compile(r"://[^/\s@]{0,80}\Z")
_REMOTE_PATH = re.compile(r":[A-Za-z0-9_.~-]{1,64}/")
_NO_TOP_LEVEL = frozenset(
    "avif bmp cfg conf css csv dll doc docx exe gif htm html ini jar jpeg jpg json log mp3 mp4 pdf png ppt pptx svg "
    "sql tar tif tiff tmp toml txt wav webp xls xlsx xml yaml yml".split()
)
_MASKED = re.compile(r"[\]】>)}*•●█] ?@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}")
_URL = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.-]{1,15}://|www\.)[^\s<>\"'`)\]}|\u0600-\u06ff\u3000-\u9fff]{1,2048}"
)
_PATH = re.compile(r"(?<![\w@./-])(?:[A-Za-z0-9-]{1,63}\.){1,5}[A-Za-z]{2,24}/[^\s<>\"'`)\]}\u3000-\u9fff]{0,2048}")
# RFC 2606 keeps it so that no mailbox is there; what a defense puts in an address's place belongs there.
_NEVER_DELEGATED = frozenset({"invalid"})
_HANDLE = re.compile(r"(?<![\w@./+-])@[A-Za-z_][\w-]{1,40}(?:\.[\w-]{1,40}){0,3}")
_AT_SIGN = re.compile(r"(?<![\w@.+%-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.^~:-]{1,64}")


def find_emails(board: Board, lexicon: Lexicon) -> None:
    """Put the addresses as real, role or placeholder; what has the form only goes to HANDLE_URL."""
    for start, end in email.find_unicode(board.text):
        if _USER_OF_URL.search(board.text, max(0, start - 100), start):
            continue  # the URL takes it
        item_type, rule = _email_type(board.text, (start, end), lexicon=lexicon)
        board.put(item_type, (start, end), rule=rule)
    for match in _MASKED.finditer(board.text):
        board.put("EMAIL_PLACEHOLDER", match.span(), rule="masked")


def _email_type(text: str, span: tuple[int, int], *, lexicon: Lexicon) -> tuple[ItemType, str]:
    start, end = span
    local, _, domain = normalise(text[start:end], casefold=True).text.rpartition("@")
    if domain.rpartition(".")[2] in _NO_TOP_LEVEL:
        return "HANDLE_URL", "file_name"
    if _REMOTE_PATH.match(text, end):
        return "HANDLE_URL", "remote"
    if ".." in local or _masked_before(text, span):
        return "EMAIL_PLACEHOLDER", "masked"
    mailbox = local.partition("+")[0]
    stem = _DIGITS_AT_END.sub("", mailbox)
    sample = not lexicon.email_words.isdisjoint(_PARTS.split(mailbox)) or domain.rpartition(".")[2] in _NEVER_DELEGATED
    if sample or _CROSSES.match(mailbox) or stem in lexicon.email_locals or domain in lexicon.email_domains:
        return "EMAIL_PLACEHOLDER", "convention"
    if mailbox in lexicon.role_locals:
        return "EMAIL_ROLE", "role"
    return "EMAIL_REAL", "address"


def _masked_before(text: str, span: tuple[int, int]) -> bool:
    """Whether masked characters lead up to the address; the same ones behind it make them bold type instead."""
    start, end = span
    mark = text[start - 1 : start]
    return mark in _MASK and not (mark == "*" and text[end : end + 1] == "*")


def find_links(board: Board, lexicon: Lexicon) -> None:  # noqa: ARG001  # all rules are called alike
    """Put URLs, handles, and what has an at sign without being an address."""
    for pattern, rule in ((_URL, "url"), (_PATH, "url"), (_HANDLE, "handle"), (_AT_SIGN, "at_sign")):
        for match in pattern.finditer(board.text):
            board.put("HANDLE_URL", match.span(), rule=rule)


def find_numbers(board: Board, lexicon: Lexicon) -> None:  # noqa: ARG001  # all rules are called alike
    """Put telephone numbers and ids as `mragaudit.pii` finds them."""
    for span in phone.find_unicode(board.text):
        board.put("PHONE", span, rule="phone")
    for span in ssn.find_unicode(board.text):
        board.put("ID", span, rule="nine_digits")
