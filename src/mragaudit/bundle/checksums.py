"""The list of checksums in a bundle, in the form of `sha256sum`, and the one digest over it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from mragaudit.errors import DataError

_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def render_checksums(digests: Mapping[str, str]) -> bytes:
    """Return one line a file, sorted by name, as `sha256sum --check` reads them."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()


def parse_checksums(content: bytes) -> dict[str, str]:
    """Return sha256 by name; raises DataError naming the line for one that is none or names a file again."""
    found: dict[str, str] = {}
    for number, line in enumerate(content.decode("utf-8", errors="replace").splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None or match[2] in found:
            raise DataError(f"line {number} is no checksum, or its file stands already above")
        found[match[2]] = match[1]
    return found


def root_digest(checksums: bytes) -> str:
    """Return the digest that stands for the whole bundle: the sha256 of its list of checksums.

    It is taken over contents, not over the archive, whose compressed bytes depend on the version of zlib.
    """
    return hashlib.sha256(checksums).hexdigest()


def is_digest(text: str) -> bool:
    """Return whether a text is a sha256 in lower-case hexadecimal."""
    return _DIGEST.fullmatch(text) is not None


def differences(listed: Mapping[str, str], found: Mapping[str, str]) -> Iterable[str]:
    """Yield one line for every file that is listed and absent, there and not listed, or of other bytes."""
    for name in sorted(listed.keys() | found.keys()):
        if name not in found:
            yield f"{name}: listed in the checksums and not in the archive"
        elif name not in listed:
            yield f"{name}: in the archive and not listed in the checksums"
        elif listed[name] != found[name]:
            yield f"{name}: its bytes are not those that the checksums list"
