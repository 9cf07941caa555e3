"""The grid of the hook audit: its splits, what its cells show of a defense, and what may be certified."""
