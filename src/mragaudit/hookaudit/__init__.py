"""The hook audit: where a privacy defense acts, from its source alone, and which metric can see it there."""

from __future__ import annotations
