"""Vocabularies as they were published before tokenizer.json: three formats, read with care."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from sentencepiece import sentencepiece_model_pb2

from model.files import read_object, read_text

# kinds of a SentencePiece piece, in its own numbering
_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4
_UNIGRAM = 1


def read_vocabulary_lines(path: Path) -> dict[str, int]:
    """A vocab.txt: a token a line, in the order of the ids.

    Raises:
        ValueError: the file does not exist, is not UTF-8, or is empty.
    """
    lines = read_text(path).split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise ValueError(f"{path} is empty")
    return {line.rstrip(): token_id for token_id, line in enumerate(lines)}


def read_vocabulary_ids(path: Path) -> dict[str, int]:
    """A vocab.json: tokens with their ids.

    Raises:
        ValueError: the file is missing or broken, or two tokens have the same id.
    """
    vocabulary = read_object(path)
    ids = vocabulary.values()
    if not all(type(token_id) is int and token_id >= 0 for token_id in ids):
        raise ValueError(f"{path} must give each token an id, a whole number from 0")
    if len(set(ids)) < len(vocabulary):
        raise ValueError(f"{path} gives two tokens the same id")
    return vocabulary


def read_merges(path: Path, vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    """A merges.txt: pairs to join, the first ones first.

    Raises:
        ValueError: the file is missing, a line is not a pair, or the vocabulary lacks one of its
            parts or what they make: the files are of two tokenizers, or one was cut short.
    """
    merges: list[tuple[str, str]] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        pair = line.rstrip("\r").split(" ")
        if pair == [""] or (number == 1 and line.startswith("#version")):
            continue
        if len(pair) != 2:
            raise ValueError(f"{path}, line {number}: not two pieces with a space between them")
        for piece in (*pair, "".join(pair)):
            if piece not in vocabulary:
                raise ValueError(
                    f"{path} does not fit its vocabulary: line {number} needs {piece!r}, which "
                    "vocab.json lacks"
                )
        merges.append((pair[0], pair[1]))
    return merges


class SentencePieces(NamedTuple):
    """A SentencePiece Unigram model.

    Attributes:
        pieces: each with its score, in the order of its ids.
        special: how many pieces at the start are no text: the unknown one and control ones.
        control: pieces that never come from text.
        user_defined: pieces that are always one token.
        normalization: the compiled table of characters to replace; None for none.
    """

    pieces: list[tuple[str, float]]
    special: int
    control: list[str]
    user_defined: list[str]
    normalization: bytes | None


def read_sentencepiece(path: Path) -> SentencePieces:
    """A sentencepiece .model file.

    Raises:
        ValueError: the file is missing, broken or cut short, or is not a Unigram model.
    """
    model: Any = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]  # made at import
    try:
        model.ParseFromString(path.read_bytes())
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist") from None
    except DecodeError:
        raise ValueError(f"{path} is not a SentencePiece model, or was cut short") from None
    if not (model.pieces and model.HasField("trainer_spec") and model.HasField("normalizer_spec")):
        raise ValueError(f"{path} is not a SentencePiece model, or was cut short")
    if model.trainer_spec.model_type != _UNIGRAM:
        raise ValueError(
            f"{path} is a SentencePiece model of another kind than Unigram; save its tokenizer as "
            "tokenizer.json"
        )
    kinds = [piece.type for piece in model.pieces]
    special = next(
        (i for i, kind in enumerate(kinds) if kind not in {_UNKNOWN, _CONTROL}), len(kinds)
    )
    return SentencePieces(
        pieces=[(piece.piece, piece.score) for piece in model.pieces],
        special=special,
        control=[piece.piece for piece in model.pieces if piece.type == _CONTROL],
        user_defined=[piece.piece for piece in model.pieces if piece.type == _USER_DEFINED],
        normalization=model.normalizer_spec.precompiled_charsmap or None,
    )
