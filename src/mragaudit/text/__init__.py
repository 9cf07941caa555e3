"""Normalisation with offsets, tokens and language: the only place that folds case or strips marks."""

from __future__ import annotations

from mragaudit.text.language import detect_language, supported_languages
from mragaudit.text.normalise import MappedText, fold_verbatim, normalise
from mragaudit.text.tokens import tokens

__all__ = ["MappedText", "detect_language", "fold_verbatim", "normalise", "supported_languages", "tokens"]
