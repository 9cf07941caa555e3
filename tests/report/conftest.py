"""The browser of the report tests."""

from chrome import browser, requests_of

__all__ = ["browser", "requests_of"]
