"""Checks of SentencePiece models before transformers converts them.

transformers mistakes a corrupt file for a tiktoken file, and accepts models of other families
without an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2

from model.tokenizers.classes import TokenizerClass

# SentencePiece's own numbers
_UNIGRAM = 1
_UNKNOWN, _CONTROL = 2, 3


def check_sentence_pieces(path: Path, kind: TokenizerClass) -> None:
    """Check a SentencePiece .model file.

    Raises:
        ValueError: the file is broken or cut short, is not a Unigram model, or belongs to another
            class of tokenizers.
    """
    model: Any = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]  # made at import
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError:
        model.Clear()
    if not (model.pieces and model.HasField("trainer_spec") and model.HasField("normalizer_spec")):
        raise ValueError(
            f"{path} is not a SentencePiece model, or was cut short; download it again"
        )
    if model.trainer_spec.model_type != _UNIGRAM:
        raise ValueError(
            f"{path} is a SentencePiece model of another kind than Unigram; save its tokenizer as "
            "tokenizer.json"
        )
    leading = kind.leading_special_pieces
    if any(piece.type not in {_UNKNOWN, _CONTROL} for piece in model.pieces[:leading]):
        raise ValueError(
            f"{path} is not a model of {kind.name}, which begins with {leading} special piece(s); "
            "name another tokenizer_class in tokenizer_config.json"
        )
