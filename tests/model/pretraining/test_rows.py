"""Packed rows from text files."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer

from fillmask_model.documents import read_documents, text_files
from fillmask_model.pretraining.rows import pack_rows
from fillmask_model.tokenizers.special_tokens import SpecialTokens, read_tokenizer
from tests.model.samples import VERSES


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("one\n", ["one"]),
        ("one\ntwo\n\nthree\n", ["one\ntwo", "three"]),
        ("\n\none\n \t\n\n\ntwo", ["one", "two"]),
        ("one\r\ntwo\r\n\r\ncaf\u00e9\r\n", ["one\ntwo", "caf\u00e9"]),
        ("\n\n", []),
    ],
)
def test_documents_part_at_blank_lines(tmp_path: Path, text: str, documents: list[str]) -> None:
    # Several blank lines are one separator. The end of a file ends a document.
    files = [tmp_path / "a.txt", tmp_path / "b.txt.xz"]
    files[0].write_bytes(text.encode())
    files[1].write_bytes(lzma.compress(text.encode()))
    assert [text.strip() for text in read_documents(files)] == 2 * documents


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("image.txt", b"good\n\n\x89PNG\n"),
        ("none.txt.xz", b"no archive at all"),
        ("cut.txt.xz", lzma.compress("\n\n".join(VERSES).encode())[:60]),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name} must be UTF-8 text or a complete \.xz file"):
        list(read_documents([tmp_path / name]))


def test_files_are_found_in_directories(tmp_path: Path) -> None:
    # Files in directories must end in .txt or .txt.xz. A named file may have any suffix.
    for name in ("b.txt", "a.txt.xz", "c.json", "d.txt.gz"):
        (tmp_path / name).touch()
    found = text_files([tmp_path / "c.json", tmp_path])
    assert [path.name for path in found] == ["c.json", "a.txt.xz", "b.txt"]


def token_stream(tokenizer: Tokenizer, documents: list[str]) -> list[int]:
    """Return the tokens of every document, each document followed by the separator."""
    separator = SpecialTokens.from_tokenizer(tokenizer).sep
    stream: list[int] = []
    for document in documents:
        stream += [*tokenizer.encode(document, add_special_tokens=False).ids, separator]
    return stream


@pytest.mark.parametrize(("count", "row_tokens"), [(1, 8), (5, 13), (600, 64)])
def test_rows_contain_all_tokens(tokenizer: Tokenizer, count: int, row_tokens: int) -> None:
    # Rows are consecutive tokens between [CLS] and [SEP], without an incomplete last row.
    documents = [VERSES[i % 3] for i in range(count)]
    special = SpecialTokens.from_tokenizer(tokenizer)
    rows = pack_rows(documents, tokenizer, special, row_tokens)
    stream = token_stream(tokenizer, documents)
    assert rows.dtype == np.int32
    assert rows.shape == (len(stream) // (row_tokens - 2), row_tokens)
    assert set(rows[:, 0].tolist()) <= {tokenizer.token_to_id("[CLS]")}
    assert set(rows[:, -1].tolist()) <= {tokenizer.token_to_id("[SEP]")}
    kept = rows[:, 1:-1].flatten().tolist()
    assert kept == stream[: len(kept)]
    assert len(stream) - len(kept) < row_tokens - 2


def test_no_text_gives_no_row(tokenizer: Tokenizer) -> None:
    # The text has no documents, or the documents are too short for a row.
    special = SpecialTokens.from_tokenizer(tokenizer)
    assert pack_rows([], tokenizer, special, 16).shape == (0, 16)
    assert pack_rows(["the cat"], tokenizer, special, 16).shape == (0, 16)


def test_special_tokens_are_found(tokenizer: Tokenizer) -> None:
    # The result has the four framing ids and every special token of the tokenizer.
    own = Tokenizer.from_str(tokenizer.to_str())
    own.add_special_tokens([AddedToken("[EXTRA]", special=True)])
    own.add_tokens(["ordinary"])
    special = SpecialTokens.from_tokenizer(own)
    framing = [special.pad, special.cls, special.sep, special.mask]
    assert framing == [own.token_to_id(name) for name in ("[PAD]", "[CLS]", "[SEP]", "[MASK]")]
    assert {own.id_to_token(i) for i in special.all if i not in framing} == {"[UNK]", "[EXTRA]"}
    assert list(special.all) == sorted(set(special.all))


@pytest.mark.parametrize(
    "names",
    [("<s>", "</s>", "<mask>", "<pad>"), ("<cls>", "<eos>", "<mask>", "<pad>")],
)
def test_special_tokens_of_other_families(names: tuple[str, ...], tokenizer: Tokenizer) -> None:
    # Tokens with BERT's names, such as [MASK], do not count if they are not special tokens.
    text = tokenizer.to_str()
    for usual, name in zip(("[CLS]", "[SEP]", "[MASK]", "[PAD]"), names, strict=True):
        text = text.replace(usual, name)
    other = Tokenizer.from_str(text)
    expected = [other.token_to_id(name) for name in names]
    other.add_tokens(["[CLS]", "[SEP]", "[MASK]", "[PAD]"])
    special = SpecialTokens.from_tokenizer(other)
    assert [special.cls, special.sep, special.mask, special.pad] == expected


def test_a_tokenizer_without_mask_is_refused(tokenizer: Tokenizer) -> None:
    # The error lists the missing special tokens.
    renamed = tokenizer.to_str().replace("[MASK]", "[BLANK]").replace("[PAD]", "[FILL]")
    with pytest.raises(ValueError, match=r"\(missing: \[MASK\] or <mask>, \[PAD\] or <pad>\);"):
        SpecialTokens.from_tokenizer(Tokenizer.from_str(renamed))


def test_a_tokenizers_own_truncation_and_padding_are_off(tokenizer: Tokenizer) -> None:
    cut = Tokenizer.from_str(tokenizer.to_str())
    cut.enable_truncation(3)
    cut.enable_padding(length=50)
    ids = read_tokenizer(cut.to_str().encode()).encode(VERSES[0]).ids
    assert ids == tokenizer.encode(VERSES[0]).ids


@pytest.mark.parametrize("content", [b'{"version": 1}', b"\xff"])
def test_a_tokenizer_that_is_none_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"tokenizer\.json must be a valid tokenizer"):
        read_tokenizer(content)
