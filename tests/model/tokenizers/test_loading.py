"""Tokenizer of a checkpoint: its files, special tokens and mask."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models

from fillmask_model.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from fillmask_model.tokenizers.loading import TokenizerFiles, read_tokenizer_files
from tests.model.samples import random_encoder, small_config
from tests.model.tokenizers.tokenizer_directories import (
    edit,
    encode,
    minilm_directory,
    read,
    write,
)
from tests.model.tokenizers.tokenizer_samples import (
    TOKENIZER_JSON,
    byte_pair_files,
    write_json,
)


def added_tokens(files: TokenizerFiles) -> dict[str, dict[str, Any]]:
    """Return the added tokens by text."""
    return {t["content"]: t for t in json.loads(files.tokenizer_json)["added_tokens"]}


def test_a_directory_without_a_tokenizer(tmp_path: Path) -> None:
    write_json(tmp_path / "tokenizer_config.json", {"mask_token": "<mask>"})
    assert read_tokenizer_files(tmp_path, "bert") is None


def test_a_complete_file_stays_as_it_is() -> None:
    files = read(minilm_directory(), "bert")
    stored = json.loads((minilm_directory() / "tokenizer.json").read_bytes())
    assert json.loads(files.tokenizer_json) == stored | {"truncation": None, "padding": None}
    assert files.notes == ()
    assert files.mask_token == "[MASK]"  # noqa: S105 - a token of another kind


@pytest.mark.parametrize(("lstrip", "tokens"), [(True, [" <mask>"]), (False, ["Ġ", "<mask>"])])
def test_the_files_decide_whether_a_mask_takes_the_space_before_it(
    lstrip: bool,  # noqa: FBT001 - a flag of the files
    tokens: list[str],
    tmp_path: Path,
) -> None:
    byte_pair_files(tmp_path)
    described = {"content": "<mask>", "lstrip": lstrip, "special": True, "normalized": False}
    write_json(tmp_path / "tokenizer_config.json", {"added_tokens_decoder": {"4": described}})
    assert encode(read(tmp_path, "roberta"), "a <mask>").tokens == ["<s>", "a", *tokens, "</s>"]


def test_a_bare_tokenizer_json_is_completed(tmp_path: Path) -> None:
    # The tokenizer's class defines special tokens and framing that tokenizer.json lacks.
    path = write(tmp_path, "BERT", fast=True) / "tokenizer.json"
    whole = read(path.parent, "bert")
    (path.parent / "tokenizer_config.json").unlink()
    edit(path, lambda fields: fields.update(added_tokens=[], post_processor=None))
    completed = read(path.parent, "bert")
    assert json.loads(completed.tokenizer_json) == json.loads(whole.tokenizer_json)
    unknown = read(path.parent, None)
    assert unknown.mask_token == "[MASK]"  # noqa: S105 - a token of another kind
    assert encode(unknown, "a").tokens == ["a"]
    assert list(added_tokens(unknown)) == ["[MASK]"]


def test_extra_special_tokens_are_marked(tmp_path: Path) -> None:
    # The list of extra special tokens has one of two field names.
    # Tokens outside of the vocabulary are not special.
    directory = write(tmp_path, "BERT")
    for key in ("additional_special_tokens", "extra_special_tokens"):
        write_json(directory / "tokenizer_config.json", {key: ["the", "[NEW]"]})
        marked = added_tokens(read(directory, "bert"))
        assert marked["the"]["special"] is True
        assert "[NEW]" not in marked


@pytest.mark.parametrize(
    ("special", "mask_token"),
    [
        (["[MASK]", "other"], "[MASK]"),
        (["<mask>"], "<mask>"),
        ([], None),
        (["[MASK]", "<mask>"], None),
    ],
)
def test_the_mask_of_a_class_unknown(
    special: list[str], mask_token: str | None, tmp_path: Path
) -> None:
    # A usual name of the mask is enough if only one special token has such a name.
    vocabulary = {"[MASK]": 0, "<mask>": 1, "other": 2}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="other"))  # noqa: S106 - a token of another kind
    tokenizer.add_special_tokens(special)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    if mask_token:
        assert read(tmp_path, None).mask_token == mask_token
    else:
        with pytest.raises(ValueError, match=r"got \[MASK\] and <mask>\); set mask_token"):
            read(tmp_path, None)
    write_json(tmp_path / "special_tokens_map.json", {"mask_token": {"content": "other"}})
    assert read(tmp_path, None).mask_token == "other"  # noqa: S105 - a token of another kind


def test_vocabulary_files_of_a_model_type_unknown(tmp_path: Path) -> None:
    directory = write(tmp_path, "BERT")
    with pytest.raises(ValueError, match=r"cannot read the tokenizer \(ValueError: Couldn't inst"):
        read(directory, "own")
    write_json(directory / "tokenizer_config.json", {"tokenizer_class": "BertTokenizerFast"})
    assert read(directory, "own").mask_token == "[MASK]"  # noqa: S105 - a token of another kind


def test_a_checkpoint_carries_its_mask(tmp_path: Path) -> None:
    # An error in the tokenizer raises a CheckpointError.
    save_checkpoint(tmp_path, random_encoder(small_config()), TOKENIZER_JSON)
    assert load_checkpoint(tmp_path).mask_token == "[MASK]"  # noqa: S105 - a token of another kind
    (tmp_path / "tokenizer.json").write_bytes(TOKENIZER_JSON.replace(b"[MASK]", b"[BLANK]"))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json has no mask token"):
        load_checkpoint(tmp_path)
