"""Tiny random checkpoints for the backends on PyTorch, made where a test wants them; a second to make, a few MB."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    GenerationConfig,
    M2M100Config,
    M2M100ForConditionalGeneration,
    NllbTokenizer,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
END = "<|endoftext|>"
CHAT_TOKENS = (END, "<|im_start|>", "<|im_end|>")
FLORES_CODES = ("eng_Latn", "zho_Hans", "deu_Latn", "arb_Arab", "swh_Latn")
SEED = 20261130


def make_qwen2(folder: Path, *, chat: bool = True) -> Path:
    """Write a random Qwen2 of two layers (head dimension 64) with a byte-level tokenizer of 256 bytes; return folder.

    The checkpoint asks for sampling and a repetition penalty, as published ones do.
    """
    tokenizer = byte_tokenizer(template=CHAT_TEMPLATE if chat else None, tokens=CHAT_TOKENS[1:])
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=8192,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.3,  # far from uniform, so that the likeliest token leads by more than rounding
        tie_word_embeddings=False,
    )
    torch.manual_seed(SEED)
    model = Qwen2ForCausalLM(config).eval()
    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=0.7,
        repetition_penalty=1.3,
        eos_token_id=[tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|im_end|>")],
        pad_token_id=tokenizer.pad_token_id,
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_m2m100(folder: Path) -> Path:
    """Write a random M2M-100 of two layers with a tokenizer in NLLB's layout and five languages; return folder."""
    tokenizer = _nllb_tokenizer()
    config = M2M100Config(
        vocab_size=len(tokenizer),
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_position_embeddings=512,
        init_std=0.3,
        decoder_start_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=False,  # tied, a random model repeats the language's code for ever
    )
    torch.manual_seed(SEED)
    M2M100ForConditionalGeneration(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def byte_tokenizer(*, template: str | None, tokens: tuple[str, ...]) -> PreTrainedTokenizerFast:
    """Return a tokenizer of 256 bytes and the given special tokens, END among them, with a chat template if any."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([END, *tokens])
    return PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=END, pad_token=END, chat_template=template)


def _nllb_tokenizer() -> NllbTokenizer:
    texts = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:?-äöüß请告诉我工单电话号码▁مرحبالعم"
    vocabulary = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    for letter in dict.fromkeys(texts):
        vocabulary[letter] = len(vocabulary)
    return NllbTokenizer(vocab=vocabulary, merges=[], extra_special_tokens=list(FLORES_CODES))
