"""Typed rows of every stage boundary and their JSONL files."""
