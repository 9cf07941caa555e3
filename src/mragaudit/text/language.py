"""Which of the candidate languages a text is in, or "und".

Order of evidence: script, then function words, then langdetect's n-gram profiles of the candidates alone.
Names and places say nothing about the language of the sentence that holds them, so capitalised words are left
out before the profiles are asked, and an answer without any function word stays undetermined. The thresholds
below are ours, set on short hand-written lines (tests/unit/text), not taken from a paper.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import langdetect
from langdetect.detector_factory import DetectorFactory
from langdetect.lang_detect_exception import LangDetectException

from mragaudit.text.function_words import FUNCTION_WORDS
from mragaudit.text.normalise import normalise

UNDETERMINED = "und"
_SEED = 0
_MAX_CHARS = 1000  # enough to decide; keeps a call within a few milliseconds
_MAX_PROFILE_CHARS = 300
_MIN_PROFILE_SHARE = 0.9  # of the probability mass, for the profiles to decide
_MIN_LETTERS = 12  # of common words, below which profiles are not trusted
_DOMINANCE = 1.5  # how much more evidence one script must have over the next
_MIN_FUNCTION_SHARE = 0.15  # running text in the languages listed has 0.25 and more
_OTHER_FUNCTION_SHARE = 0.25  # of one language's function words speaks against a language without a list
_MIN_COMMON_LETTERS = 3

# What is no evidence for a language: addresses on the net, and tokens that hold a digit (codes, numbers,
# dates).
_NOT_PROSE = re.compile(
    r"(?:https?://|www\.)[^\s一-鿿]+|[\w.%+'-]{1,64}@[\w.-]+|[A-Za-z_-]*[0-9][A-Za-z0-9_-]*", re.ASCII
)
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n\"“”«»„(]|[-*•] )\s*$")

_NAME_PARTICLES = frozenset(["al", "el", "ben", "bin", "bint", "ibn", "es", "da", "de", "di", "la", "van"])

_SCRIPTS = {
    "Kana": re.compile("[\u3040-\u30ff\u31f0-\u31ff]"),
    "Hang": re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]"),
    "Hani": re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"),
    "Arab": re.compile("[\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff\u0750-\u077f]"),
    "Cyrl": re.compile("[\u0400-\u052f]"),
    "Grek": re.compile("[\u0370-\u03ff]"),
    "Hebr": re.compile("[\u05d0-\u05ea]"),
    "Deva": re.compile("[\u0900-\u0963\u0970-\u097f]"),
    "Beng": re.compile("[\u0980-\u09e3]"),
    "Guru": re.compile("[\u0a00-\u0a65\u0a70-\u0a7f]"),
    "Gujr": re.compile("[\u0a80-\u0ae3]"),
    "Taml": re.compile("[\u0b80-\u0be5]"),
    "Telu": re.compile("[\u0c00-\u0c63]"),
    "Knda": re.compile("[\u0c80-\u0ce3]"),
    "Mlym": re.compile("[\u0d00-\u0d63]"),
    "Thai": re.compile("[\u0e00-\u0e4f]"),
}
_SCRIPT_OF = {
    "ar": "Arab", "fa": "Arab", "ur": "Arab", "bg": "Cyrl", "mk": "Cyrl", "ru": "Cyrl", "uk": "Cyrl", "el": "Grek",
    "he": "Hebr", "hi": "Deva", "mr": "Deva", "ne": "Deva", "bn": "Beng", "pa": "Guru", "gu": "Gujr", "ta": "Taml",
    "te": "Telu", "kn": "Knda", "ml": "Mlym", "th": "Thai", "ko": "Hang", "ja": "Kana", "zh": "Hani",
}  # fmt: skip
# One Han sign or Hangul syllable stands for about this many letters of an alphabet.
_LETTERS_PER_SIGN = {"Hani": 3.0, "Hang": 2.0, "Kana": 1.5}


@lru_cache(maxsize=1)
def _profile_files() -> Mapping[str, tuple[Path, ...]]:
    """Return the profile files by language; Chinese has one for each of its two scripts."""
    found: dict[str, tuple[Path, ...]] = {}
    for path in sorted((Path(langdetect.__file__).parent / "profiles").iterdir()):
        language = path.name.split("-")[0]
        found[language] = (*found.get(language, ()), path)
    return found


def supported_languages() -> frozenset[str]:
    """Return the language tags that `detect_language` can tell apart."""
    return frozenset(_profile_files())


@lru_cache(maxsize=64)
def _factory(languages: tuple[str, ...]) -> DetectorFactory:
    factory = DetectorFactory()
    factory.set_seed(_SEED)
    files = [path for language in languages for path in _profile_files()[language]]
    factory.load_json_profile([path.read_text(encoding="utf-8") for path in files])
    return factory


def _shares(text: str, languages: tuple[str, ...]) -> dict[str, float]:
    """Return the profiles' probabilities by language; empty where the text has no known n-gram."""
    if len(languages) == 1:
        return {languages[0]: 1.0}
    detector = _factory(languages).create()
    detector.append(text)
    try:
        found = detector.get_probabilities()
    except LangDetectException:  # its way to say that there is nothing to measure
        return {}
    shares: dict[str, float] = {}
    for entry in found:
        language = entry.lang.split("-")[0]
        shares[language] = shares.get(language, 0.0) + entry.prob
    return shares


def _top(shares: Mapping[str, float]) -> tuple[str, float]:
    """Return the language of the largest share, the first in alphabet among equals."""
    if not shares:
        return UNDETERMINED, 0.0
    best = min(shares, key=lambda language: (-shares[language], language))
    return best, shares[best]


def _common_words(text: str) -> tuple[str, ...]:
    """Return the words of the text in lower case, without those that may be names.

    Where the text has lower case, capitalised words are left out; a function word that begins a sentence stays.
    """
    matches = list(_WORD.finditer(text))
    if not any(match[0].islower() and len(match[0]) > 1 for match in matches) and text.upper() == text:
        return tuple(match[0].lower() for match in matches)
    common = [
        match[0].lower()
        for index, match in enumerate(matches)
        if (match[0].islower() and not _joins_names(matches, index))
        or (_is_function_word(match[0]) and _starts_sentence(text, match.start()))
    ]
    return tuple(common)


def _joins_names(matches: list[re.Match[str]], index: int) -> bool:
    """Whether the word is a particle inside a name, such as "Dar es Salaam"."""
    inside = 0 < index < len(matches) - 1 and matches[index][0] in _NAME_PARTICLES
    return inside and matches[index - 1][0][0].isupper() and matches[index + 1][0][0].isupper()


def _starts_sentence(text: str, at: int) -> bool:
    return _SENTENCE_START.search(text[max(0, at - 8) : at]) is not None


@lru_cache(maxsize=4096)
def _is_function_word(word: str) -> bool:
    return any(word.lower() in words for words in FUNCTION_WORDS.values())


def _function_counts(words: Iterable[str], languages: tuple[str, ...]) -> dict[str, float]:
    """Return how many words are function words of each language that has a list; shared ones are split."""
    counts = dict.fromkeys((language for language in languages if language in FUNCTION_WORDS), 0.0)
    for word in words:
        owners = [language for language in counts if word in FUNCTION_WORDS[language]]
        for owner in owners:
            counts[owner] += 1.0 / len(owners)
    return counts


def _latin(text: str, languages: tuple[str, ...]) -> str:
    words = _common_words(text)
    if sum(map(len, words)) < _MIN_COMMON_LETTERS:
        return UNDETERMINED
    counts = _function_counts(words, languages)
    lead, count = _top(counts)
    rest = max((value for language, value in counts.items() if language != lead), default=0.0)
    guess, share = _top(_shares(" ".join(words)[:_MAX_PROFILE_CHARS], languages))
    if guess not in counts:  # a language without a list rests on its profile alone
        letters = sum(map(len, words))
        firm = share >= _MIN_PROFILE_SHARE and letters >= _MIN_LETTERS and count / len(words) < _OTHER_FUNCTION_SHARE
        return guess if firm else UNDETERMINED
    if count < 1.0 or count / len(words) < _MIN_FUNCTION_SHARE:
        return _shared_words_only(guess, share, counts, words)
    agrees = guess == lead and count > rest
    return lead if agrees or count >= rest + 1.0 else _tied(guess, share, counts, count)


def _shared_words_only(guess: str, share: float, counts: Mapping[str, float], words: tuple[str, ...]) -> str:
    """Return the profiles' guess where its only function words are ones that another candidate has too."""
    letters = sum(map(len, words))
    firm = counts[guess] > 0.0 and share >= _MIN_PROFILE_SHARE and letters >= _MIN_LETTERS
    return guess if firm and counts[guess] / len(words) >= _MIN_FUNCTION_SHARE else UNDETERMINED


def _tied(guess: str, share: float, counts: Mapping[str, float], count: float) -> str:
    """Return the profiles' guess where function words leave two languages level."""
    return guess if counts.get(guess, 0.0) >= count - 0.5 and share >= _MIN_PROFILE_SHARE else UNDETERMINED


def _script_weights(text: str) -> Counter[str]:
    """Return letters of evidence per script; words of Latin script that may be names count a quarter."""
    weights: Counter[str] = Counter()
    for script, pattern in _SCRIPTS.items():
        count = len(pattern.findall(text))
        if count:
            weights[script] = round(count * _LETTERS_PER_SIGN.get(script, 1.0) * 4)
    shouted = text.upper() == text and not any(weights.values())
    for match in _WORD.finditer(text):
        if "A" <= match[0][0] <= "ɏ":
            weights["Latn"] += len(match[0]) * (4 if shouted or not match[0][0].isupper() else 1)
    if weights["Kana"]:  # Han signs beside kana are Japanese
        weights["Kana"] += weights.pop("Hani", 0)
    return weights


def _dominant(weights: Counter[str]) -> str | None:
    ranked = weights.most_common(2)
    if not ranked or ranked[0][1] == 0:
        return None
    if len(ranked) > 1 and ranked[0][1] < _DOMINANCE * ranked[1][1]:
        return None
    return ranked[0][0]


def _other_script(text: str, languages: tuple[str, ...]) -> str:
    if len(languages) == 1:
        return languages[0]
    guess, share = _top(_shares(text[:_MAX_PROFILE_CHARS], languages))
    return guess if share >= _MIN_PROFILE_SHARE else UNDETERMINED


def _of_script(script: str, candidates: Iterable[str]) -> tuple[str, ...]:
    known = {language.split("-")[0].lower() for language in candidates} & supported_languages()
    return tuple(sorted(language for language in known if _SCRIPT_OF.get(language, "Latn") == script))


def detect_language(text: str, *, candidates: Iterable[str]) -> str:
    """Return the candidate that the text is in, or "und".

    "und" where there is nothing to go by (empty text, digits, addresses, names alone), where two languages
    are mixed without one prevailing, and where the evidence points to no candidate. Candidates are BCP 47
    tags, of which the language part counts; those without a langdetect profile are never returned. Never
    raises on text. The same text always gives the same answer. Only the first 1,000 characters are read.
    """
    prose = _NOT_PROSE.sub(" ", normalise(text[:_MAX_CHARS], keep_lines=True).text)
    script = _dominant(_script_weights(prose))
    if script is None:
        return UNDETERMINED
    languages = _of_script(script, candidates)
    if not languages:
        return UNDETERMINED
    return _latin(prose, languages) if script == "Latn" else _other_script(prose, languages)
