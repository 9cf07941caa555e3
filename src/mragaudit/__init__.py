"""Stage-decomposed privacy audit of multilingual retrieval-augmented generation."""

__version__ = "0.1.0"
