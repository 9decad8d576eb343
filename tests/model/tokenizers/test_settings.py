"""Settings of text processing in tokenizer_config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer

from tests.model.tokenizers.tokenizer_directories import edit, encode, read, write
from tests.model.tokenizers.tokenizer_samples import BERT_SPECIAL, byte_pair_files, write_json


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, ["e", "中", "文"]),
        ({"do_lower_case": False, "strip_accents": False}, ["[UNK]", "中", "文"]),
        ({"do_lower_case": False, "strip_accents": True}, ["[UNK]", "中", "文"]),
        ({"strip_accents": False}, ["é", "中", "文"]),
        ({"tokenize_chinese_chars": False}, ["[UNK]"]),
        ({"do_lower_case": False, "strip_accents": None}, ["[UNK]", "中", "文"]),
        ({"do_lower_case": False, "tokenizer_class": "PreTrainedTokenizerFast"}, ["e", "中", "文"]),
    ],
)
def test_settings_beside_a_tokenizer_json(
    options: dict[str, Any], tokens: list[str], tmp_path: Path
) -> None:
    vocabulary = {token: i for i, token in enumerate([*BERT_SPECIAL, "e", "é", "中", "文"])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a token of another kind
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    write_json(tmp_path / "tokenizer_config.json", options)
    framed = encode(read(tmp_path, "bert"), "É中文").tokens
    assert [token for token in framed if token not in {"[CLS]", "[SEP]"}] == tokens


def test_the_class_decides_about_capital_letters_with_a_note(tmp_path: Path) -> None:
    # Where nothing is said, BertTokenizer lowercases whatever tokenizer.json does.
    directory = write(tmp_path, "BERT, cased", fast=True)
    (directory / "tokenizer_config.json").unlink()
    files = read(directory, "bert")
    assert json.loads(files.tokenizer_json)["normalizer"]["lowercase"] is True
    [note] = files.notes
    assert "as in transformers, BertTokenizer replaces a part of the file" in note
    generic = {"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "[MASK]"}
    write_json(directory / "tokenizer_config.json", generic)
    files = read(directory, "bert")
    assert json.loads(files.tokenizer_json)["normalizer"]["lowercase"] is False
    assert files.notes == ()


def test_settings_without_effect_are_noted(tmp_path: Path) -> None:
    directory = write(tmp_path, "BERT")
    write_json(directory / "tokenizer_config.json", {"never_split": ["DNA"]})
    [note] = read(directory, "bert").notes
    assert note.endswith("never_split has no effect, as in transformers' BertTokenizer")
    roberta = write(tmp_path / "roberta", "ModernBERT", fast=True)
    edit(roberta / "tokenizer.json", lambda fields: fields["model"].update(dropout=0.5))
    files = read(roberta, "modernbert")
    assert "the dropout of BPE is for training" in files.notes[0]
    assert json.loads(files.tokenizer_json)["model"]["dropout"] is None


def test_a_space_before_the_text_by_setting(tmp_path: Path) -> None:
    # The field is add_prefix_space.
    directory = write(tmp_path, "RoBERTa", fast=True)
    assert encode(read(directory, "roberta"), "a").tokens[1] == "a"
    edit(directory / "tokenizer_config.json", lambda fields: fields.update(add_prefix_space=True))
    assert encode(read(directory, "roberta"), "a").tokens[1:-1] in (["Ġa"], ["Ġ", "a"])


def test_no_space_before_words_by_setting(tmp_path: Path) -> None:
    directory = write(tmp_path, "XLM-RoBERTa")
    assert "▁" in encode(read(directory, "xlm-roberta"), "capital").tokens[1]
    write_json(directory / "tokenizer_config.json", {"add_prefix_space": False})
    encoding = encode(read(directory, "xlm-roberta"), "the capital")
    assert not any("▁" in token for token in encoding.tokens)
    assert encoding.ids == AutoTokenizer.from_pretrained(directory)("the capital")["input_ids"]


def test_offsets_leave_the_space_out_or_not(tmp_path: Path) -> None:
    # The field is trim_offsets.
    byte_pair_files(tmp_path)
    assert encode(read(tmp_path, "roberta"), "a .").offsets[2:-1] in ([(2, 3)], [(2, 2), (2, 3)])
    write_json(tmp_path / "tokenizer_config.json", {"trim_offsets": False})
    assert encode(read(tmp_path, "roberta"), "a .").offsets[2:-1] in ([(1, 3)], [(1, 2), (2, 3)])
