"""Write a Gemma 3 GGUF file as a checkpoint folder of transformers: python tools/gguf_to_safetensors.py FILE FOLDER.

The weights are those of the file, dequantised to float32, so that other engines can be held against llama.cpp on
the same weights. Needs the packages gguf, safetensors and transformers; nothing is downloaded.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, TokenType
from gguf.quants import dequantize
from safetensors.numpy import save_file
from transformers import AddedToken, Gemma3TextConfig, GemmaTokenizer

ARCHITECTURE = "gemma3"
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
IN_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}
"""Names in llama.cpp → names in transformers."""
_BLOCK = re.compile(r"blk\.(\d+)\.(\w+)")


def convert(source: Path, folder: Path) -> None:
    """Write config.json, model.safetensors and the tokenizer into folder; raises ValueError for another model."""
    reader = GGUFReader(source)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    if fields["general.architecture"] != ARCHITECTURE or any("rope.scaling" in name for name in fields):
        raise ValueError(f"{source}: only Gemma 3 models without rope scaling are converted, the 270M and 1B ones")
    folder.mkdir(parents=True, exist_ok=True)
    weights = {target_name(tensor.name): target_values(tensor) for tensor in reader.tensors}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    make_config(fields).save_pretrained(folder)
    make_tokenizer(fields).save_pretrained(folder)


def target_name(name: str) -> str:
    """Return the name that transformers gives a tensor of llama.cpp."""
    stem = name.removesuffix(".weight")
    if block := _BLOCK.fullmatch(stem):
        return f"model.layers.{block[1]}.{IN_BLOCK[block[2]]}.weight"
    return f"{WHOLE[stem]}.weight"


def target_values(tensor: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return a tensor's values in float32; llama.cpp's file holds norms with the 1 added that the model adds."""
    values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    return values - np.float32(1) if tensor.name.endswith("norm.weight") else values


def make_config(fields: Mapping[str, Any]) -> Gemma3TextConfig:
    """Return the configuration of the file's model."""
    own = {name.removeprefix(f"{ARCHITECTURE}."): value for name, value in fields.items()}
    return Gemma3TextConfig(
        architectures=["Gemma3ForCausalLM"],
        dtype="float32",
        vocab_size=len(fields["tokenizer.ggml.tokens"]),
        hidden_size=own["embedding_length"],
        intermediate_size=own["feed_forward_length"],
        num_hidden_layers=own["block_count"],
        num_attention_heads=own["attention.head_count"],
        num_key_value_heads=own["attention.head_count_kv"],
        head_dim=own["attention.key_length"],
        query_pre_attn_scalar=own["attention.key_length"],
        max_position_embeddings=own["context_length"],
        sliding_window=own["attention.sliding_window"],
        rms_norm_eps=own["attention.layer_norm_rms_epsilon"],
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": own["rope.freq_base"]},
            # llama.cpp has it in its code, not in the file.
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
        bos_token_id=fields["tokenizer.ggml.bos_token_id"],
        eos_token_id=fields["tokenizer.ggml.eos_token_id"],
        pad_token_id=fields["tokenizer.ggml.padding_token_id"],
    )


def make_tokenizer(fields: Mapping[str, Any]) -> GemmaTokenizer:
    """Return the file's tokenizer: its pieces, and the merges that their scores stand for."""
    pieces = fields["tokenizer.ggml.tokens"]
    kinds = fields["tokenizer.ggml.token_type"]
    names = {
        f"{role}_token": pieces[fields[f"tokenizer.ggml.{name}_token_id"]]
        for role, name in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
    }
    tokenizer = GemmaTokenizer(
        vocab={piece: number for number, piece in enumerate(pieces)},
        merges=list(merges_of(pieces, fields["tokenizer.ggml.scores"])),
        add_bos_token=fields["tokenizer.ggml.add_bos_token"],
        **names,
    )
    tokenizer.add_tokens(
        [
            AddedToken(piece, normalized=False, special=kind == TokenType.CONTROL)
            for piece, kind in zip(pieces, kinds, strict=True)
            if kind in (TokenType.CONTROL, TokenType.USER_DEFINED)
        ]
    )
    return tokenizer


def merges_of(pieces: Sequence[str], scores: Sequence[float]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of pieces that make a piece, best score first, as sentencepiece joins them."""
    known = set(pieces)
    by_score = sorted(range(len(pieces)), key=lambda number: -scores[number])
    for piece in (pieces[number] for number in by_score):
        for cut in range(1, len(piece)):
            if piece[:cut] in known and piece[cut:] in known:
                yield piece[:cut], piece[cut:]


if __name__ == "__main__":
    try:
        source, folder = map(Path, sys.argv[1:])
    except ValueError:
        sys.exit(__doc__)
    convert(source, folder)
