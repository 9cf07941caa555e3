"""Starts llama.cpp's server in Python: `python llama_server.py MODEL.gguf PORT`."""

from __future__ import annotations

import sys

import llama_cpp
import uvicorn
from llama_cpp import llama_cpp as library
from llama_cpp.server.app import create_app
from llama_cpp.server.settings import ModelSettings, ServerSettings

from mragaudit.llm.llama_engine import AMX_BUILD

CONTEXT_TOKENS = 256


def plain_weights() -> None:
    """Keep weights as they are where rearranged ones crash, as our own backend does."""
    defaults = library.llama_model_default_params

    def parameters() -> llama_cpp.llama_model_params:
        found = defaults()
        if AMX_BUILD in library.llama_print_system_info():
            found.use_extra_bufts = False
        return found

    library.llama_model_default_params = parameters


def main() -> None:
    model, port = sys.argv[1:]
    plain_weights()
    # All logits: the server gives log-probabilities only then. Flash attention is off as in our own backend.
    settings = ModelSettings(
        model=model,
        model_alias="gemma",
        n_ctx=CONTEXT_TOKENS,
        n_threads=1,
        n_threads_batch=1,
        logits_all=True,
        verbose=False,
    )
    app = create_app(server_settings=ServerSettings(), model_settings=[settings])
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
