"""Small tokenizers of every class, trained in the tests and written like published tokenizers."""

# ruff: noqa: RUF001 - other scripts are what this is about

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sentencepiece
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

SENTENCES = (
    "The capital of France is Paris. The capital of Italy is Rome, and Rome is old!",
    "She drank a cup of tea (or coffee?) while the dogs were barking and walking around.",
    "In 1999, 1,000 people and 2,500 cats lived there; it's the mailman's café, déjà vu.",
    "A \"quoted\" word, ``another'' one, and `a third` one: \"\" ''.",
    "Ça va? Les élèves étudient à l'école. Où est la bibliothèque, s'il vous plaît?",
    "Die Straße ist groß und schön, über Ärger spricht niemand.",
    "日本語の文章です。東京は日本の首都です。 中文也可以，北京是首都。",
    "Привет, мир! Москва - столица России. Москва большая.",
    "مرحبا بالعالم. القاهرة عاصمة مصر. שלום עולם",
    "def main(): return [x for x in range(10) if x % 2 == 0]  # code\n\treturn None",
    "😀 😀 smile 👍🏽 thumbs 👩‍👩‍👧 family 🇫🇷 flag",
)
AMINO_ACIDS = (
    *("<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO", ".", "-"),
    *("<null_1>", "GVS", "<mask>"),  # "GVS", a token of several letters, is not ESM's
)
K_MERS = tuple(a + b + c for a in "ACGT" for b in "ACGT" for c in "ACGT")
BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")

# a file that read_tokenizer_files returns unchanged
TOKENIZER_JSON = (
    b'{"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"[MASK]",'
    b'"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],'
    b'"normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null,'
    b'"model":{"type":"WordLevel","vocab":{"[MASK]":0,"the":1},"unk_token":"the"}}'
)


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def word_pieces(special: Iterable[str] = BERT_SPECIAL, *, lowercase: bool = True) -> list[str]:
    """Train a WordPiece vocabulary and return its tokens in the order of their ids."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106 - a token of another kind
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=600, special_tokens=list(special), show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    vocabulary = tokenizer.get_vocab()
    return sorted(vocabulary, key=vocabulary.__getitem__)


def byte_pairs(special: Iterable[str] = ROBERTA_SPECIAL) -> tuple[dict[str, int], list[list[str]]]:
    """Train byte-level BPE and return its vocabulary and merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 2, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]


def sentence_pieces(**options: Any) -> bytes:
    """Train a SentencePiece model, by default a Unigram model."""
    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 3),
        model_writer=stream,
        model_type=options.pop("model_type", "unigram"),
        vocab_size=options.pop("vocab_size", 300),
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return stream.getvalue()


def albert_pieces() -> bytes:
    """Train a Unigram model with ALBERT's special pieces and symbols that are always one token."""
    return sentence_pieces(
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        pad_piece="<pad>",
        bos_piece="[CLS]",
        eos_piece="[SEP]",
        control_symbols=["[MASK]"],
        user_defined_symbols=["(", ")", "–"],
    )


def byte_pair_files(directory: Path) -> None:
    """Write vocab.json and merges.txt."""
    vocabulary, merges = byte_pairs()
    write_json(directory / "vocab.json", vocabulary)
    lines = "".join(f"{first} {second}\n" for first, second in merges)
    (directory / "merges.txt").write_text("#version: 0.2\n" + lines, encoding="utf-8")


def modern_tokenizer() -> Tokenizer:
    """Return byte-level BPE in ModernBERT's form."""
    special = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
    vocabulary, merges = byte_pairs(special)
    tokenizer = Tokenizer(models.BPE(vocabulary, [(a, b) for a, b in merges]))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer
