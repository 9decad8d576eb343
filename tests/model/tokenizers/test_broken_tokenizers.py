"""Broken tokenizer files, each with one error message that names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.model.tokenizers.tokenizer_directories import KINDS, edit, read, write
from tests.model.tokenizers.tokenizer_samples import sentence_pieces, write_json

Break = Callable[[Path], object]


def cut(name: str) -> Break:
    """Return a function that cuts a file to its first half."""
    return lambda d: (d / name).write_bytes(
        (d / name).read_bytes()[: (d / name).stat().st_size // 2]
    )


def put(name: str, content: bytes) -> Break:
    """Return a function that replaces a file."""
    return lambda d: (d / name).write_bytes(content)


def remove(name: str) -> Break:
    """Return a function that deletes a file."""
    return lambda d: (d / name).unlink()


def settings(**fields: Any) -> Break:
    """Return a function that replaces tokenizer_config.json."""
    return lambda d: write_json(d / "tokenizer_config.json", fields)


def same_id(directory: Path) -> None:
    """Give two tokens of vocab.json the same id."""
    edit(directory / "vocab.json", lambda vocabulary: vocabulary.update({"<s>": 1}))


# kind, whether with tokenizer.json, what is wrong with it, and what the error says
BROKEN: list[tuple[str, bool, Break, str]] = [
    (
        "BERT",
        True,
        cut("tokenizer.json"),  # the vocabulary's order is random, so the cut may split a character
        r"tokenizer\.json (must be a valid tokenizer|is not valid UTF-8)",
    ),
    ("BERT", True, put("tokenizer.json", b"[]"), r"must be a valid tokenizer"),
    (
        *("BERT", False, settings(do_lower_case="no")),
        r"transformers cannot read the tokenizer \(TypeError: 'str' object is not an instance",
    ),
    (
        *("BERT", True, settings(mask_token="<mask>")),  # noqa: S106 - a token of another kind
        r"tokenizer\.json must contain <mask>, the mask_token of BertTokenizer",
    ),
    (
        *("BERT", False, put("vocab.txt", b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n")),
        r"vocab\.txt must contain \[MASK\], the mask_token of BertTokenizer; name",
    ),
    (
        *("BERT", False, put("vocab.txt", b"[MASK]\n[UNK]\n[CLS]\n[S")),
        r"vocab\.txt must contain the special token \[SEP\]",
    ),
    (
        *("BERT", False, put("vocab.txt", b"[PAD]\n[CLS]\n[SEP]\n[MASK]\n")),
        r"vocab\.txt must be .* \(WordPiece error: Missing \[UNK\] token",
    ),
    ("BERT", False, put("vocab.txt", b""), r"vocab\.txt is empty"),
    (
        *("RoBERTa", False, put("vocab.json", b'{"a": "b"}')),
        r"vocab\.json must map each token to a unique whole number$",
    ),
    ("RoBERTa", False, same_id, r"vocab\.json must map each token to a unique"),
    (
        "RoBERTa",
        False,
        put("merges.txt", b"#version: 0.2\na l\nal xyz\n"),
        r"cannot read the tokenizer \(.*`xyz` out of vocabulary\); download",
    ),
    (
        *("RoBERTa", False, remove("merges.txt")),
        r"cannot read the tokenizer \(.*both be from memory or both",
    ),
    (
        *("CamemBERT", False, put("sentencepiece.bpe.model", b"\x00\xff" * 40)),
        r"sentencepiece\.bpe\.model is not a complete SentencePiece model",
    ),
    (
        *("XLM-RoBERTa", False, cut("sentencepiece.bpe.model")),
        r"sentencepiece\.bpe\.model is not a complete SentencePiece model",
    ),
    (
        "ALBERT",
        False,
        lambda d: (d / "spiece.model").write_bytes(
            sentence_pieces(model_type="bpe", vocab_size=300)
        ),
        r"cannot read the tokenizer \(TypeError: ",
    ),
    (
        *("BERT", False, settings(word_tokenizer_type="mecab")),
        r"word_tokenizer_type must not be set, .* \(got 'mecab'\); save",
    ),
    (
        *("BERT", False, settings(tokenizer_class="AlbertTokenizer")),
        r"must contain spiece\.model or tokenizer\.json for AlbertTokenizer \(got vocab\.txt",
    ),
    (
        *("BERT", False, settings(tokenizer_class="BertJapaneseTokenizer")),
        r"BertJapaneseTokenizer is code in Python, which a bundle cannot contain; save an equal",
    ),
]


@pytest.mark.parametrize(
    ("name", "fast", "spoil", "message"), BROKEN, ids=[row[-1][:60] for row in BROKEN]
)
def test_broken_files(name: str, spoil: Break, message: str, tmp_path: Path, *, fast: bool) -> None:
    directory = write(tmp_path, name, fast=fast)
    read(directory, KINDS[name].model_type)
    spoil(directory)
    with pytest.raises(ValueError, match=message) as caught:
        read(directory, KINDS[name].model_type)
    assert str(directory) in str(caught.value)
    assert len(str(caught.value)) < 500
