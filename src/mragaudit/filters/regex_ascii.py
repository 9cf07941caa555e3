"""The published kind of output filter."""

from __future__ import annotations

from mragaudit.filters.base import OutputFilter
from mragaudit.pii import email, phone, ssn

REGEX_ASCII = OutputFilter(
    name="regex_ascii",
    description=(
        "The kind of filter that is published and copied: word boundaries and ASCII classes on the answer as it is. "
        "Nine bare digits count as an id. It misses an address or number that touches a letter of any script, digits "
        "of other scripts, typographic dashes, invisible characters and glued extensions. "
        'Blind spot: spelled-out addresses such as "name (at) domain dot com".'
    ),
    normalised=False,
    finders={"email": email.find_ascii, "phone": phone.find_ascii, "ssn": ssn.find_ascii},
)
