"""Tiny random guard models: the architectures of the published ones, with chat templates in their documented format.

The templates have the tokens, blocks and role names of the published ones in their order; the wording is ours.
"""

from __future__ import annotations

from pathlib import Path

import torch
from tiny_models import SEED, byte_tokenizer
from tokenizers import processors
from transformers import (
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    GenerationConfig,
    Llama4Config,
    Llama4ForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

LLAMA_TOKENS = ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
LLAMA_4_TOKENS = ("<|begin_of_text|>", "<|header_start|>", "<|header_end|>", "<|eot|>")
CHATML_TOKENS = ("<|im_start|>", "<|im_end|>", "<think>", "</think>")
_ALTERNATE = (
    "{% for message in messages %}{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate, the user first') }}{% endif %}{% endfor %}"
)
_TEXT = "{% for message in messages %}{{ speaker[message.role] }}: {{ message.content | trim }}\n\n{% endfor %}"
_PARTS = (
    "{% for message in messages %}{% for part in message.content | selectattr('type', 'equalto', 'text') %}"
    "{{ speaker[message.role] }}: {{ part.text | trim }}\n\n{% endfor %}{% endfor %}"
)


def _llama_guard(conversation: str, *, tokens: tuple[str, str, str, str]) -> str:
    begin, opened, closed, end = tokens
    return (
        f"{_ALTERNATE}{{% set speaker = {{'user': 'User', 'assistant': 'Agent'}} %}}"
        f"{begin}{opened}user{closed}\n\nTask: is the last 'User' message unsafe?\n\n"
        "<BEGIN UNSAFE CONTENT CATEGORIES>\nS1: Violent Crimes.\nS7: Privacy.\n<END UNSAFE CONTENT CATEGORIES>\n\n"
        f"<BEGIN CONVERSATION>\n\n{conversation}<END CONVERSATION>\n\n"
        f"First line 'safe' or 'unsafe', second line the codes.{end}{opened}assistant{closed}"
    )


TEMPLATES = {
    "qwen3guard": (
        "{% set speaker = {'user': 'USER', 'assistant': 'ASSISTANT'} %}<|im_start|>user\n# Task:\n"
        "Rate the last query.\n\n<BEGIN UNSAFE CONTENT CATEGORIES>\nPII.\nJailbreak.\n"
        "<END UNSAFE CONTENT CATEGORIES>\n\n<BEGIN CONVERSATION>\n\n"
        f"{_TEXT}<END CONVERSATION>\n\n"
        "First line 'Safety: Safe', 'Safety: Unsafe' or 'Safety: Controversial', second line 'Categories:'."
        "{{ '<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n' }}"
    ),
    "llama_guard_3": _llama_guard(_TEXT, tokens=LLAMA_TOKENS),
    "llama_guard_3_1b": _llama_guard(_PARTS, tokens=LLAMA_TOKENS),
    "llama_guard_4": _llama_guard(_PARTS, tokens=LLAMA_4_TOKENS),
}
_TOKENS = {
    "qwen3guard": CHATML_TOKENS,
    "llama_guard_3": LLAMA_TOKENS,
    "llama_guard_3_1b": LLAMA_TOKENS,
    "llama_guard_4": LLAMA_4_TOKENS,
}
_SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": 4096,
    "initializer_range": 0.3,
}


def make_guard(folder: Path, name: str) -> Path:
    """Write a random generative guard with the template of that name; return folder."""
    tokenizer = byte_tokenizer(template=TEMPLATES[name], tokens=_TOKENS[name])
    torch.manual_seed(SEED)
    model = _decoder(name, tokenizer).eval()
    ends = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids(_TOKENS[name][3 if "llama" in name else 1])]
    model.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=tokenizer.pad_token_id)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _decoder(name: str, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    ids = {"vocab_size": len(tokenizer), "bos_token_id": None, "eos_token_id": tokenizer.eos_token_id}
    if name == "qwen3guard":
        return Qwen3ForCausalLM(Qwen3Config(**_SIZES, **ids))
    if name.startswith("llama_guard_3"):
        return LlamaForCausalLM(LlamaConfig(**_SIZES, **ids))
    # Llama Guard 4 is Llama 4's multimodal architecture without experts: every layer is dense.
    text = {**_SIZES, **ids, "intermediate_size_mlp": 96, "moe_layers": [], "num_local_experts": 1}
    vision = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    return Llama4ForConditionalGeneration(Llama4Config(text_config=text, vision_config=vision))


def make_classifier(folder: Path, *, labels: tuple[str, ...] = ("BENIGN", "MALICIOUS")) -> Path:
    """Write a random DeBERTa of two layers with a classifier's head, 512 positions as Prompt Guard 2; return folder."""
    tokenizer = byte_tokenizer(template=None, tokens=("[CLS]", "[SEP]"))
    opening, closing = tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", opening), ("[SEP]", closing)]
    )
    config = DebertaV2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
        relative_attention=True,
        position_buckets=64,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        type_vocab_size=0,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.3,
        id2label=dict(enumerate(labels)),
        label2id={label: place for place, label in enumerate(labels)},
        num_labels=len(labels),
    )
    torch.manual_seed(SEED)
    DebertaV2ForSequenceClassification(config).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
