"""Tiny random checkpoints in the layouts of real ones, made in a second: nothing is downloaded.

They know no language; what is tested on them is loading, shapes, batches, scores and files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
"""In the order of XLM-RoBERTa's vocabulary."""
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:;?!-@äöüßالمطبةفتوح索赔待处理"
WORDS = ("▁the", "▁claim", "▁is", "▁open", "▁der", "▁ist", "ing", "er")
HIDDEN = 32
POSITIONS = 8194
"""As in BGE-M3: 8,192 tokens, counted from the padding token's id + 1."""


def make_tokenizer(folder: Path) -> int:
    """Write a small unigram tokenizer with XLM-RoBERTa's special tokens; return the size of its vocabulary."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors  # noqa: PLC0415
    from transformers import PreTrainedTokenizerFast  # noqa: PLC0415

    letters = sorted({*LETTERS, "▁"})
    pieces = [(piece, 0.0) for piece in SPECIAL] + [(piece, -3.0) for piece in WORDS]
    pieces += [(piece, -6.0) for piece in letters]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = ("bos_token", "pad_token", "eos_token", "unk_token", "mask_token", "cls_token", "sep_token")
    tokens = dict(zip(names, (*SPECIAL, "<s>", "</s>"), strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=POSITIONS - 2, **tokens).save_pretrained(
        folder
    )
    return len(pieces)


def make_xlm_roberta(folder: Path, *, seed: int = 0) -> Path:
    """Write a two-layer XLM-RoBERTa with its tokenizer; its weights as the published BGE-M3 has them, in one .bin."""
    import torch  # noqa: PLC0415
    from transformers import XLMRobertaConfig, XLMRobertaModel  # noqa: PLC0415

    folder.mkdir(parents=True)
    size = make_tokenizer(folder)
    torch.manual_seed(seed)
    config = XLMRobertaConfig(
        vocab_size=size,
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=POSITIONS,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        initializer_range=0.5,
        architectures=["XLMRobertaModel"],
    )
    model = XLMRobertaModel(config)
    config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def make_bge_m3(folder: Path, *, seed: int = 0) -> Path:
    """Write a checkpoint in BGE-M3's layout: an XLM-RoBERTa and two linear heads over its tokens."""
    import torch  # noqa: PLC0415

    make_xlm_roberta(folder, seed=seed)
    torch.save(torch.nn.Linear(HIDDEN, HIDDEN).state_dict(), folder / "colbert_linear.pt")
    torch.save(torch.nn.Linear(HIDDEN, 1).state_dict(), folder / "sparse_linear.pt")
    return folder


def make_sentence_transformer(folder: Path, *, prompts: dict[str, str] | None = None) -> Path:
    """Write a sentence-transformers folder: an XLM-RoBERTa, the mean over its tokens, no normalisation."""
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer  # noqa: PLC0415

    source = make_xlm_roberta(folder.with_name(f"{folder.name}-base"), seed=1)
    transformer: Any = Transformer(str(source), max_seq_length=64)
    SentenceTransformer(modules=[transformer, Pooling(HIDDEN)], prompts=prompts, device="cpu").save_pretrained(
        str(folder), create_model_card=False
    )
    return folder


def as_hub_snapshot(cache: Path, repository: str, source: Path, *, commit: str) -> Path:
    """Put a checkpoint into a hub's cache as a download of `main` would, and return the snapshot's folder."""
    store = cache / f"models--{repository.replace('/', '--')}"
    (store / "refs").mkdir(parents=True)
    (store / "refs" / "main").write_text(commit)
    (store / "snapshots").mkdir()
    return source.rename(store / "snapshots" / commit)


class Payload:
    """An object whose unpickling would make a file."""

    def __init__(self, target: Path) -> None:
        self._target = target

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Path.touch, (self._target,)


def put_code_into(weights: Path, target: Path) -> None:
    """Replace a file of weights by one that makes `target` when its pickled code is run."""
    import torch  # noqa: PLC0415

    torch.save({"weight": Payload(target)}, weights)
