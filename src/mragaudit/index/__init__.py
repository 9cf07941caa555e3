"""Vector search: the exact index, against which faster ones are compared."""
