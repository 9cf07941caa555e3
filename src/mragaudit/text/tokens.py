"""Tokens for overlap measures in segmented and unsegmented scripts."""

from __future__ import annotations

import re

# Scripts written without spaces: Han, kana, Thai, Lao, Khmer, Myanmar. One character is one token there.
UNSEGMENTED = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_TOKEN = re.compile(rf"[{UNSEGMENTED}]|[^\W_{UNSEGMENTED}]+")


def tokens(text: str) -> list[str]:
    """Return the runs of letters and digits in order; each Han, kana, Thai, Lao, Khmer or Myanmar sign alone.

    Case and form are left as they are: normalise first. Text without letters or digits gives an empty list.
    """
    return _TOKEN.findall(text)
