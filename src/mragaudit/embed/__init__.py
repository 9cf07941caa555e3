"""Embedders behind `mragaudit.protocols.Embedder`; each module is one embedder, loaded by the registry."""
