"""Conversion of text files to packed rows of token ids.

Text files have one paragraph per line and a blank line between documents. Files with the suffix
`.xz` are compressed. A row contains documents with a separator between them. All rows have the same
length and need no padding.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

TokenRows: TypeAlias = NDArray[np.integer[Any]]  # (N, T) ids of any integer type

DOCUMENTS_PER_CALL = 256  # enough documents for every core, but few enough to limit memory
# names of the special tokens in different families
_NAMES = {
    "cls": ("[CLS]", "<s>", "<cls>"),
    "sep": ("[SEP]", "</s>", "<eos>"),
    "mask": ("[MASK]", "<mask>"),
    "pad": ("[PAD]", "<pad>"),
}


@lru_cache(maxsize=2)  # one order for packed rows and one for short texts
def epoch_order(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Return a seeded permutation (count,) of the indices for an epoch."""
    return np.random.default_rng([seed, epoch]).permutation(count)


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Ids of a tokenizer's special tokens.

    Attributes:
        cls, sep, mask, pad: ids of the tokens that BERT names [CLS], [SEP], [MASK] and [PAD].
        all: ids of all special tokens in ascending order.
    """

    cls: int
    sep: int
    mask: int
    pad: int
    all: tuple[int, ...]

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> SpecialTokens:
        """Find the special tokens of a tokenizer by their usual names.

        Tokens with the flag `special` take precedence.

        Raises:
            ValueError: the tokenizer lacks a special token.
        """
        added = tokenizer.get_added_tokens_decoder()
        special = {token.content: i for i, token in added.items() if token.special}
        found: dict[str, int] = {}
        lacking: list[str] = []
        for role, names in _NAMES.items():
            marked = [special[name] for name in names if name in special]
            ids = [*marked, *(tokenizer.token_to_id(name) for name in names)]
            if (token_id := next((i for i in ids if i is not None), None)) is None:
                lacking.append(" or ".join(names))
            else:
                found[role] = token_id
        if lacking:
            raise ValueError(
                "the tokenizer must have every special token (missing: "
                f"{', '.join(lacking)}); use another tokenizer"
            )
        return cls(**found, all=tuple(sorted({*special.values(), *found.values()})))


def read_tokenizer(tokenizer_json: bytes) -> Tokenizer:
    """Load a tokenizer with truncation and padding disabled.

    Raises:
        ValueError: the bytes are not a tokenizer.json.
    """
    try:
        tokenizer = Tokenizer.from_str(tokenizer_json.decode())
    except Exception as error:  # noqa: BLE001 - tokenizers raises plain Exception
        raise ValueError(f"tokenizer.json must be a valid tokenizer ({error})") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def check_vocabulary(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Check that a checkpoint has an embedding for each token.

    Raises:
        ValueError: the tokenizer has more tokens than the checkpoint.
    """
    if (size := tokenizer.get_vocab_size()) > vocab_size:
        raise ValueError(
            f"the tokenizer must have at most {vocab_size} tokens, one for each token embedding of "
            f"the checkpoint (got {size}); use the checkpoint's own tokenizer"
        )


def text_files(paths: Iterable[Path]) -> list[Path]:
    """List the given files and the sorted .txt and .txt.xz files of the given directories.

    Raises:
        ValueError: a path does not exist, or a directory contains no text file.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if p.name.endswith((".txt", ".txt.xz")))
            if not found:
                raise ValueError(f"{path} must contain a .txt or .txt.xz file")
            files += found
        elif path.is_file():
            files.append(path)
        else:
            raise ValueError(f"{path} does not exist; give a file or a directory of text files")
    return files


def read_documents(files: Iterable[Path]) -> Iterator[str]:
    """Yield the documents of text files in order.

    Blank lines separate documents.

    Raises:
        ValueError: a file is not UTF-8 text or not a complete .xz file.
    """
    for file in files:
        lines: list[str] = []
        try:
            with open_text(file) as stream:
                for line in stream:
                    if line.strip():
                        lines.append(line.rstrip("\n"))
                    elif lines:
                        yield "\n".join(lines)
                        lines = []
        except (UnicodeDecodeError, EOFError, lzma.LZMAError) as error:
            raise ValueError(
                f"{file} must be UTF-8 text or a complete .xz file ({error})"
            ) from None
        if lines:
            yield "\n".join(lines)


def pack_rows(
    documents: Iterable[str], tokenizer: Tokenizer, special: SpecialTokens, row_tokens: int
) -> NDArray[np.int32]:
    """Pack documents into rows `[CLS] text [SEP]` of exactly row_tokens tokens.

    Args:
        documents: texts to join with the separator token.
        tokenizer: tokenizer, used without its post-processor.
        row_tokens: length of a row in tokens. The result excludes an incomplete last row.

    Returns:
        Token ids (rows, row_tokens), int32.
    """
    stream = iter(documents)
    pieces: list[NDArray[np.int32]] = []
    separator = np.array([special.sep], np.int32)
    while batch := list(islice(stream, DOCUMENTS_PER_CALL)):
        for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
            pieces += [np.asarray(encoding.ids, np.int32), separator]
    body = row_tokens - 2
    tokens = np.concatenate(pieces) if pieces else np.empty(0, np.int32)
    count = len(tokens) // body
    rows = np.empty((count, row_tokens), np.int32)
    rows[:, 0] = special.cls
    rows[:, 1:-1] = tokens[: count * body].reshape(count, body)
    rows[:, -1] = special.sep
    return rows


def open_text(file: Path) -> IO[str]:
    """Open a UTF-8 text file, which is compressed if its suffix is .xz."""
    if file.suffix == ".xz":
        return lzma.open(file, "rt", encoding="utf-8")
    return file.open(encoding="utf-8")
