"""Settings of text processing in tokenizer_config.json."""

from __future__ import annotations

import json
from pathlib import Path

from tests.model.tokenizers.tokenizer_directories import edit, read, write
from tests.model.tokenizers.tokenizer_samples import write_json


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
