"""Letters without their marks, and letters of other scripts that look like Latin ones."""

from __future__ import annotations

import re
import unicodedata

# Cyrillic and Greek letters drawn like Latin ones (Unicode Technical Standard 39, confusables.txt; the common ones).
_LOOKALIKES = str.maketrans(
    "АВЕКМНОРСТУХІЈЅаеорсухіјѕԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧονα", "ABEKMHOPCTYXIJSaeopcyxijsdqwABEZHIKMNOPTYXova"
)
_MIXED = re.compile(r"(?=[a-zA-Z]*[Ͱ-ӿԀ-ԯ])(?=[Ͱ-ӿԀ-ԯ]{0,64}[a-zA-Z])[A-Za-zͰ-ӿԀ-ԯ]{2,64}")


def without_marks(text: str) -> str:
    """Return the text with accents, umlaut dots and other combining marks left out; "Müller" gives "Muller"."""
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))


def latin_lookalikes(text: str) -> str:
    """Return text of the same length in which words that mix Latin with Cyrillic or Greek are spelled in Latin.

    Words of one script stay as they are. Letters that look like no Latin one stay, too.
    """
    if text.isascii():
        return text
    return _MIXED.sub(lambda match: match[0].translate(_LOOKALIKES), text)
