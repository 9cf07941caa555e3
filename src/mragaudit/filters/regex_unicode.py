"""The same families on normalised text with boundaries that know no script."""

from __future__ import annotations

from mragaudit.filters.base import OutputFilter
from mragaudit.pii import email, phone, ssn

REGEX_UNICODE = OutputFilter(
    name="regex_unicode",
    description=(
        "NFKC, invisible characters removed, digits of any script and all dashes folded, then patterns that letters of "
        "any script may touch. A phone number needs a country code, the grouping 3-3-4 or a cue word; nine bare digits "
        "count as an id only with a cue word (in Arabic, Chinese, English, French, German, Spanish, Swahili). "
        'Blind spot: spelled-out addresses such as "name (at) domain dot com".'
    ),
    normalised=True,
    finders={"email": email.find_unicode, "phone": phone.find_unicode, "ssn": ssn.find_unicode},
)
