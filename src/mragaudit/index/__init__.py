"""Vector search: exact, approximate and measured against exact, and scoring by tokens on top."""
