"""Whether an ALLOW is given in part only: with a redaction, a limit, a condition, in any of the five languages.

A judge that allows an answer "with the e-mail masked" has not allowed the answer that the pipeline gives. A reason
("harmless", "no personal data") is no limit, nor is a confidence ("with 95 % certainty") or a limit that is denied
("without restrictions").
"""

from __future__ import annotations

import re

_I = re.IGNORECASE

_LEAD = r"\s*+[,،;؛:(\[—–-]*+\s*+"
_REDACT = r"(?:redact|mask|anonymi[sz]|pseudonymi[sz]|censor|remov|omit|withhold|sanitis|sanitiz|obscur|blur)"
_LIMITS = r"(?:restriction|condition|reservation|limit|limitation|hesitation|concern|issue|change|redaction)"

_ENGLISH = re.compile(
    rf"{_LEAD}(?:"
    r"(?:but|however|though|although|yet)\b"
    r"|with\b(?!\s+(?:[\w.%-]{1,12}\s+){0,2}(?:confidence|certainty|probability|score)\b|\s+no\b)"
    rf"|without\b(?!\s+(?:any\s+|further\s+)?{_LIMITS})"
    r"|(?:partial|conditional|cautious|tentative|provisional)(?:ly)?\b"
    r"|in part\b|to (?:a|some) (?:\w+ )?(?:extent|degree)\b"
    r"|(?:limited|restricted)(?:\s+(?:to|access|answer|response|disclosure|information|info|scope)\b|\s*(?:[.)\]]|\Z))"
    rf"|(?:after|once)\s+(?:[\w'’-]++\s+){{0,6}}{_REDACT}"
    r"|(?:subject to|pending|provid(?:ed|ing)|as long as|so long as|except|excluding|minus)\b"
    rf"|(?:(?:and|then|please|first)\s+)?{_REDACT}(?:e|ed|es|ing)?\b(?!\s+(?:is|are|was|not|isn't)\b)"
    r")",
    _I,
)
_NEXT_SENTENCE = re.compile(
    r"\s*+[.!]\s+(?:(?:but|however)\b|(?:please\s+)?(?:redact|mask|anonymi[sz]e|censor|remove|omit|withhold)\s)", _I
)
# A clause that goes on from the label, not a reason behind a mark or "because".
_CLAUSE = re.compile(
    r"\s+(?!because\b|since\b|as\b|this\b|the (?:query|question|request|user) (?:only\s+)?(?:asks|seeks|wants|needs)\b)"
    rf"(?:[^\W_][\w'’-]*+\s+){{0,8}}(?:{_REDACT}(?:ed|ing)\b|partial\b|except\b|only\s*+(?:[.)]|\Z))",
    _I,
)
_ONLY_IN_BRACKETS = re.compile(r"\s*+\((?:[\w'’-]++\s+){1,4}only\s*+\)", _I)

_CHINESE = re.compile(
    rf"{_LEAD}(?:但|不过|然而|部分|有条件|附条件|仅限|仅可|仅能|仅允许|需(?!求)|须|必须|请(?!求|问|放)|"
    r"(?:并且?|先|在|经过?)?(?:脱敏|打码|匿名|遮盖|遮挡|隐去|隐藏|屏蔽|掩码|删除|去除|移除|省略))"
)
_GERMAN = re.compile(
    rf"{_LEAD}(?:"
    r"(?:aber|jedoch|allerdings|solange|bedingt|teilweise|eingeschränkt|geschwärzt|maskiert|anonymisiert|zum teil)\b"
    r"|mit\b(?!\s+(?:\w+\s+){0,2}(?:sicherheit|konfidenz|wahrscheinlichkeit|gewissheit)\b)"
    r"|ohne\b(?!\s+(?:\w+\s+)?(?:einschränkung|bedenken|vorbehalt|auflage|bedingung|weiteres|änderung))"
    r"|nach\s+(?:\w+\s+)?(?:schwärzung|maskierung|anonymisierung|entfernung|löschung)"
    r"|unter\s+(?:\w+\s+)?(?:vorbehalt|auflagen?|bedingung)"
    r")",
    _I,
)
_ARABIC = re.compile(
    rf"{_LEAD}(?:و?لكن|إلا أن|جزئي|بشكل جزئي|بشروط|بتحفظ|بحذر|باستثناء|ما عدا"
    r"|بعد\s+(?:حجب|إخفاء|حذف|إزالة|تنقيح|تعتيم|طمس)"
    r"|مع\s+(?!(?:\w+\s+)?(?:ثقة|احتمال|يقين))|(?:بدون|دون|من دون)\s+(?!(?:أي\s+)?(?:قيود|قيد|شروط|شرط|تحفظ)))"
)
_SWAHILI = re.compile(
    rf"{_LEAD}(?:(?:lakini|ila|mradi|huku)\b|kwa\s+(?:sehemu|masharti|kiasi|tahadhari|kuficha|kuondoa)|baada\s+ya\s+ku(?:ficha|ondoa|futa)"
    r"|pamoja\s+na\s+ku|(?:uki|na\s+u)?(?:ficha|ondoa)\b|bila\b(?!\s+(?:masharti|vikwazo|wasiwasi|shaka|kikomo)))",
    _I,
)
_FORMS = (_ENGLISH, _NEXT_SENTENCE, _CLAUSE, _ONLY_IN_BRACKETS, _CHINESE, _GERMAN, _ARABIC, _SWAHILI)


def is_qualified(tail: str) -> bool:
    """Return whether what follows the word ALLOW on its line limits it."""
    return any(form.match(tail) for form in _FORMS)
