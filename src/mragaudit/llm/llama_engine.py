"""One llama.cpp model in this process: its vocabulary, and one sequence that is extended and rolled back.

The low-level calls are used because the high-level class copies all logits and keeps its own idea of what is cached.
"""

from __future__ import annotations

import ctypes
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mragaudit.errors import BackendError
from mragaudit.protocols import Meter
from mragaudit.registry import import_package

CHUNK_TOKENS = 512
"""Tokens of one decode call at most. Chunks are counted from a fixed start, so they never depend on the cache."""
AMX_BUILD = b"AMX_INT8 = 1"
"""In llama.cpp's own description where it was compiled for, and on, a processor with AMX."""
_LEVELS_KEPT = (3, 4)  # ggml: 3 is warning, 4 is error
_LEVEL_CONTINUED = 5
_complaints: deque[str] = deque(maxlen=8)
_log_callback: Any = None


def load_library() -> Any:
    """Return the module llama_cpp, its chatter off; warnings and errors are kept for the text of an exception.

    Raises MissingPackageError with the install command.
    """
    global _log_callback  # noqa: PLW0603 - llama.cpp has one log per process, and keeps a bare pointer to this
    library = import_package("llama_cpp", extra="embedded")
    if _log_callback is None:
        library.llama_backend_init()
        _log_callback = library.llama_log_callback(_keep_complaint)
        library.llama_log_set(_log_callback, ctypes.c_void_p(0))
    return library


def _keep_complaint(level: int, text: bytes, _user_data: object) -> None:
    if level in _LEVELS_KEPT or (level == _LEVEL_CONTINUED and _complaints):
        _complaints.append(text.decode("utf-8", errors="replace").strip())


def _with_complaints(message: str) -> BackendError:
    said = "; ".join(text for text in _complaints if text)
    _complaints.clear()
    return BackendError(f"{message}: {said}" if said else message)


class Vocabulary:
    """Text to tokens and back."""

    def __init__(self, library: Any, model: Any) -> None:
        self._library = library
        self._vocab = library.llama_model_get_vocab(model)
        self.size = int(library.llama_vocab_n_tokens(self._vocab))
        first = bool(library.llama_vocab_get_add_bos(self._vocab))
        self.start: tuple[int, ...] = (int(library.llama_vocab_bos(self._vocab)),) if first else ()
        """Tokens that open every prompt: the model's begin-of-sequence token, or none."""
        self._pieces: dict[int, bytes] = {}

    def tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        """Return the tokens of a text, nothing added; `parse_special` reads names of special tokens as such."""
        if not text:
            return []
        content = text.encode("utf-8")
        room = len(content) + 2  # a token covers at least one byte; two more for what a vocabulary may put before
        tokens = (ctypes.c_int32 * room)()
        count = self._library.llama_tokenize(self._vocab, content, len(content), tokens, room, False, parse_special)
        if count < 0:
            raise _with_complaints(f"a text of {len(text)} characters cannot be tokenised")
        return list(tokens[:count])

    def piece(self, token: int) -> bytes:
        """Return the bytes of one token; they may end inside a character. Special tokens have none."""
        known = self._pieces.get(token)
        if known is None:
            buffer = ctypes.create_string_buffer(256)
            size = self._library.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
            if size < 0:
                buffer = ctypes.create_string_buffer(-size)
                size = self._library.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
            known = self._pieces[token] = buffer.raw[:size]
        return known

    def text_of(self, token: int) -> str:
        """Return the name of a token, such as `<eos>`; empty for a vocabulary without that token (-1)."""
        name = self._library.llama_vocab_get_text(self._vocab, token) if token >= 0 else b""
        return str(name.decode("utf-8"))

    def ends(self, token: int) -> bool:
        """Return whether a token ends an answer (end of sequence, end of turn)."""
        return bool(self._library.llama_vocab_is_eog(self._vocab, token))

    @property
    def begin_text(self) -> str:
        """Name of the begin-of-sequence token."""
        return self.text_of(int(self._library.llama_vocab_bos(self._vocab)))

    @property
    def end_text(self) -> str:
        """Name of the end-of-sequence token."""
        return self.text_of(int(self._library.llama_vocab_eos(self._vocab)))


class Engine:
    """A loaded model with one sequence of tokens in its cache."""

    def __init__(self, path: Path, *, context_tokens: int, threads: int, meter: Meter) -> None:
        self._library = load_library()
        self._meter = meter
        self._context = self._model = None
        _complaints.clear()
        self._model = self._library.llama_model_load_from_file(str(path).encode(), self._model_parameters())
        if not self._model:
            raise _with_complaints(f"llama.cpp cannot load {path.name}")
        self._context = self._library.llama_init_from_model(self._model, self._parameters(context_tokens, threads))
        if not self._context:
            raise _with_complaints(f"llama.cpp cannot make a context of {context_tokens} tokens for {path.name}")
        self.context_tokens = int(self._library.llama_n_ctx(self._context))
        self.vocabulary = Vocabulary(self._library, self._model)
        self._memory = self._library.llama_get_memory(self._context)
        self._make_batch()
        self.length = 0
        """Tokens now in the cache."""

    def _model_parameters(self) -> Any:
        parameters = self._library.llama_model_default_params()
        # Weights rearranged for AMX crash the first decode (llama.cpp in llama-cpp-python 0.3.36, Sapphire Rapids).
        if AMX_BUILD in self._library.llama_print_system_info():
            parameters.use_extra_bufts = False
        return parameters

    def _parameters(self, context_tokens: int, threads: int) -> Any:
        parameters = self._library.llama_context_default_params()
        parameters.n_ctx = context_tokens
        parameters.n_batch = parameters.n_ubatch = CHUNK_TOKENS
        parameters.n_seq_max = 1
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.no_perf = True
        # Flash attention splits a single token's sum over the threads: with it, 1 and 2 threads gave other logits.
        parameters.flash_attn_type = self._library.LLAMA_FLASH_ATTN_TYPE_DISABLED
        # With the small sliding-window cache, rolling back to a prefix would find its oldest tokens overwritten.
        parameters.swa_full = True
        return parameters

    def _make_batch(self) -> None:
        self._batch = self._library.llama_batch_init(CHUNK_TOKENS, 0, 1)
        for place in range(CHUNK_TOKENS):
            self._batch.n_seq_id[place] = 1
            self._batch.seq_id[place][0] = 0
        shape = (CHUNK_TOKENS,)
        self._tokens = np.ctypeslib.as_array(self._batch.token, shape)
        self._positions = np.ctypeslib.as_array(self._batch.pos, shape)
        self._wanted = np.ctypeslib.as_array(self._batch.logits, shape)

    def append(self, tokens: Sequence[int], *, logits: bool) -> None:
        """Evaluate tokens after those in the cache, in chunks; `logits` asks for those of the last one."""
        for start in range(0, len(tokens), CHUNK_TOKENS):
            chunk = tokens[start : start + CHUNK_TOKENS]
            last = start + len(chunk) == len(tokens)
            self._decode(chunk, wanted=1 if logits and last else 0)

    def append_all(self, tokens: Sequence[int]) -> None:
        """Evaluate at most CHUNK_TOKENS tokens in one call, with the logits of each."""
        self._decode(tokens, wanted=len(tokens))

    def _decode(self, tokens: Sequence[int], *, wanted: int) -> None:
        count = len(tokens)
        self._batch.n_tokens = count
        self._tokens[:count] = tokens
        self._positions[:count] = range(self.length, self.length + count)
        self._wanted[: count - wanted] = 0
        self._wanted[count - wanted : count] = 1
        started = time.perf_counter()
        status = self._library.llama_decode(self._context, self._batch)
        self._meter.add(time.perf_counter() - started)
        if status != 0:
            raise _with_complaints(f"llama.cpp gave status {status} for {count} tokens at {self.length}")
        self.length += count

    def logits(self, place: int = -1) -> NDArray[np.float32]:
        """Return a view of the logits (n_vocabulary,) at a place of the last call; the next call overwrites it."""
        pointer = self._library.llama_get_logits_ith(self._context, place)
        view: NDArray[np.float32] = np.ctypeslib.as_array(pointer, (self.vocabulary.size,))
        return view

    def roll_back(self, length: int) -> None:
        """Drop the tokens after the first `length`."""
        if not self._library.llama_memory_seq_rm(self._memory, 0, length, -1):
            raise _with_complaints(f"llama.cpp cannot roll back to {length} of {self.length} tokens")
        self.length = length

    def chat_template(self) -> str:
        """Return the chat template in the file's metadata; raises BackendError where there is none."""
        source = self._library.llama_model_chat_template(self._model, None)
        if not source:
            raise BackendError("the model has no chat template; set its rendering to completion")
        return str(source.decode("utf-8"))

    def close(self) -> None:
        """Free context and model; may be called twice."""
        if self._context:
            self._library.llama_batch_free(self._batch)
            self._library.llama_free(self._context)
            self._context = None
        if self._model:
            self._library.llama_model_free(self._model)
            self._model = None
