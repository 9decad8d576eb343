"""Checks of SentencePiece models before their conversion by transformers.

transformers reports a corrupt file as a tiktoken file. Without these checks, transformers accepts
models of other families without an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2

from fillmask_model.tokenizers.classes import TokenizerClass

# numbers of SentencePiece's enumerations
_UNIGRAM = 1
_UNKNOWN, _CONTROL = 2, 3


def check_sentence_pieces(path: Path, kind: TokenizerClass) -> None:
    """Check a SentencePiece .model file.

    Raises:
        ValueError: the file is broken, is not a Unigram model, or belongs to another tokenizer
            class.
    """
    model: Any = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]  # created at import
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError:
        model.Clear()
    if not (model.pieces and model.HasField("trainer_spec") and model.HasField("normalizer_spec")):
        raise ValueError(f"{path} is not a complete SentencePiece model; download it again")
    if model.trainer_spec.model_type != _UNIGRAM:
        raise ValueError(
            f"{path} must be a Unigram model (got model_type {model.trainer_spec.model_type}); "
            "save the tokenizer as tokenizer.json"
        )
    leading = kind.leading_special_pieces
    if any(piece.type not in {_UNKNOWN, _CONTROL} for piece in model.pieces[:leading]):
        raise ValueError(
            f"{path} must begin with the special pieces of {kind.name}, {leading} in total; "
            "set another tokenizer_class in tokenizer_config.json"
        )
