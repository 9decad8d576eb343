"""Conversion of tokenizers by transformers, from checked files only, and notes about settings."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.model.tokenizers.tokenizer_directories import (
    KINDS,
    edit,
    encode,
    read,
    write,
)
from tests.model.tokenizers.tokenizer_samples import write_json


@pytest.mark.parametrize("name", ["BERT", "RoBERTa", "CamemBERT", "ESM-2"])
def test_nothing_but_checked_files_is_seen(name: str, tmp_path: Path) -> None:
    directory = write(tmp_path, name)
    model_type = KINDS[name].model_type
    plain = read(directory, model_type).tokenizer_json
    (directory / "tokenization_own.py").write_text("raise SystemExit\n")
    (directory / "tokenizer.model").write_bytes(b"garbage")
    (directory / "added_tokens.pkl").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    elsewhere = tmp_path / "vocab.txt"
    elsewhere.write_text("secret\n")
    config = directory / "tokenizer_config.json"
    if not config.exists():
        write_json(config, {})
    misleading: dict[str, Any] = {
        "auto_map": {"AutoTokenizer": ["tokenization_own.Own", None]},
        "vocab_file": str(elsewhere),
        "tokenizer_file": str(elsewhere),
        "vocab": {"secret": 0},
        "trust_remote_code": True,
    }
    edit(config, lambda fields: fields.update(misleading))
    assert read(directory, model_type).tokenizer_json == plain


def test_nothing_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[Any] = []

    def refuse(*address: Any, **_: Any) -> None:
        attempts.append(address)
        raise OSError("no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    directory = write(tmp_path, "BERT")
    # by default transformers requests data from the Hub for tokenizers above 100,000 tokens
    with (directory / "vocab.txt").open("a") as vocabulary:
        vocabulary.writelines(f"word{number}\n" for number in range(100_001))
    assert encode(read(directory, "bert"), "word100000").tokens[1:-1] == ["word100000"]
    assert attempts == []


def test_special_tokens_that_the_vocabulary_lacks_are_not_invented(tmp_path: Path) -> None:
    directory = write(tmp_path, "BERT")
    vocabulary = (directory / "vocab.txt").read_text(encoding="utf-8").replace("[PAD]", "padding")
    (directory / "vocab.txt").write_text(vocabulary, encoding="utf-8")
    content = json.loads(read(directory, "bert").tokenizer_json)
    assert "[PAD]" not in {token["content"] for token in content["added_tokens"]}


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
