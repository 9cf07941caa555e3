"""The grid of the hook audit: which attacks meet which defenses, what was seen, and what may be said of it."""
