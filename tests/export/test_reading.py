"""How an export reads texts: the gate of the tokenizer, and texts that the model can read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import normalizers

from fillmask_export.bundle.reading import Reading
from fillmask_export.heads.errors import VerificationError
from fillmask_export.sample_texts import GivenTexts
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.tokenizers.loading import read_tokenizer_files
from tests.model.samples import random_encoder, small_config
from tests.model.tokenizers.tokenizer_samples import word_pieces, write_json

RESIDUES = "LAGVSERTIDPKQNFYMHWCXUBZO"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def published(directory: Path, vocabulary: list[str], **settings: Any) -> Checkpoint:
    """Return a random BERT with a published tokenizer."""
    (directory / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    write_json(directory / "tokenizer_config.json", settings)
    files = read_tokenizer_files(directory, "bert")
    assert files is not None
    model = random_encoder(small_config(vocab_size=len(vocabulary), max_positions=160))
    content, mask = files.tokenizer_json, files.mask_token
    return Checkpoint(model, content, False, mask_token=mask, reference=files.reference)  # noqa: FBT003 - its head is trained


def read(checkpoint: Checkpoint, **options: Any) -> Reading:
    chosen: dict[str, Any] = {"max_tokens": None, "special": None, "int8": False} | options
    return Reading.of_checkpoint(checkpoint, GivenTexts(), **chosen)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"do_lower_case": False}, "proteins with spaces between residues"),
        ({}, "English texts"),
    ],
)
def test_texts_are_those_that_the_model_can_read(
    settings: dict[str, bool], name: str, tmp_path: Path
) -> None:
    # In lower case, no residue is known, so that the export warns and int8 is refused.
    checkpoint = published(tmp_path, [*SPECIAL, *RESIDUES], **settings)
    reading = read(checkpoint)
    assert reading.texts.name == reading.figures["texts"] == name
    assert reading.figures["inputs"] > 500
    if name == "English texts":
        [note] = reading.notes
        assert note.startswith("warning: 100 % of the tokens of English texts")
        with pytest.raises(ValueError, match=r"of English texts are unknown .* --texts"):
            read(checkpoint, int8=True)
    else:
        assert reading.notes == []
        assert reading.figures["unknown_share"] == 0


def test_another_tokenizer_than_the_published_one_is_refused(tmp_path: Path) -> None:
    checkpoint = published(tmp_path, word_pieces())
    checkpoint.reference.backend_tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    with pytest.raises(VerificationError, match=r"must have the tokens of BertTokenizer in transf"):
        read(checkpoint)


def test_fields_of_the_published_tokenizer(tmp_path: Path) -> None:
    settings = {"truncation_side": "left", "additional_special_tokens": ["[E1]"]}
    checkpoint = published(tmp_path, [*word_pieces(), "[E1]"], **settings)
    reading = read(replace(checkpoint, max_length=100))
    assert reading.fields["max_tokens"] == 100
    assert reading.fields["truncation_side"] == "left"
    assert reading.fields["special_tokens"] == "refuse"
    [note] = reading.notes
    assert note.startswith("max_tokens is 100, the length to which the published code truncates")
    assert "special_tokens" not in read(checkpoint, special="literal").fields
