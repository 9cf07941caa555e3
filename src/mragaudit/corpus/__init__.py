"""Documents and queries: synthesised from templates, or imported from a user's files."""
