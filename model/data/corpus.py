"""From plain text to packed rows of token ids.

Text files hold one paragraph a line and a blank line between documents; `.xz` files are read as
they are. Documents are laid end to end, parted by the separator, and cut into rows of equal length,
so no computation is spent on padding.
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


@lru_cache(maxsize=2)  # of the epoch that is running, for packed rows and for short texts
def epoch_order(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """A permutation (count,) of 0 to count - 1."""
    return np.random.default_rng([seed, epoch]).permutation(count)


TokenRows: TypeAlias = NDArray[np.integer[Any]]  # (N, T) ids, of any width in bytes

DOCUMENTS_PER_CALL = 256  # keeps every core of the tokenizer busy and memory small


# what the tokenizers of different families call the same thing
_NAMES = {
    "cls": ("[CLS]", "<s>", "<cls>"),
    "sep": ("[SEP]", "</s>", "<eos>"),
    "mask": ("[MASK]", "<mask>"),
    "pad": ("[PAD]", "<pad>"),
}


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The ids that frame and mask text.

    Attributes:
        cls, sep, mask, pad: ids of the special tokens that BERT calls so.
        all: every special id of the tokenizer.
    """

    cls: int
    sep: int
    mask: int
    pad: int
    all: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: Tokenizer, mask_token: str | None = None) -> SpecialTokens:
        """Look them up by their usual names; those that are marked as special come first.

        Args:
            tokenizer: which tokens it marks as special does matter.
            mask_token: the mask's name, where it is known.

        Raises:
            ValueError: the tokenizer lacks one of them.
        """
        added = tokenizer.get_added_tokens_decoder()
        special = {token.content: i for i, token in added.items() if token.special}
        found: dict[str, int] = {}
        lacking: list[str] = []
        for role, usual in _NAMES.items():
            names = (mask_token,) if role == "mask" and mask_token else usual
            marked = [special[name] for name in names if name in special]
            ids = [*marked, *(tokenizer.token_to_id(name) for name in names)]
            if (token_id := next((i for i in ids if i is not None), None)) is None:
                lacking.append(" or ".join(names))
            else:
                found[role] = token_id
        if lacking:
            raise ValueError(f"the tokenizer lacks {', '.join(lacking)}")
        return cls(**found, all=tuple(sorted({*special.values(), *found.values()})))


def read_tokenizer(tokenizer_json: bytes) -> Tokenizer:
    """A tokenizer that neither cuts nor pads, whatever its file asks for: rows are cut here.

    Raises:
        ValueError: the bytes are not a tokenizer.json.
    """
    try:
        tokenizer = Tokenizer.from_str(tokenizer_json.decode())
    except Exception as error:  # noqa: BLE001 - tokenizers raises nothing narrower
        raise ValueError(f"tokenizer.json cannot be read: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def text_files(paths: Iterable[Path]) -> list[Path]:
    """The .txt and .txt.xz files named or lying in the named directories, sorted within each.

    Raises:
        ValueError: a path does not exist, or a directory holds no text.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if p.name.endswith((".txt", ".txt.xz")))
            if not found:
                raise ValueError(f"{path} holds no .txt or .txt.xz file")
            files += found
        elif path.is_file():
            files.append(path)
        else:
            raise ValueError(f"{path} does not exist")
    return files


def read_documents(files: Iterable[Path]) -> Iterator[str]:
    """Documents in file order, each a block of lines without blank ones or a line end after it.

    Raises:
        ValueError: a file is not UTF-8 text, or not a whole .xz file.
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
            raise ValueError(f"{file} cannot be read: {error}") from None
        if lines:
            yield "\n".join(lines)


def pack_rows(
    documents: Iterable[str], tokenizer: Tokenizer, special: SpecialTokens, row_tokens: int
) -> NDArray[np.int32]:
    """Rows `[CLS] text [SEP]` of exactly row_tokens tokens.

    Args:
        documents: texts; the separator stands between them.
        tokenizer: used without its post-processor.
        special: its framing ids.
        row_tokens: length of a row. What is left at the end and fills no row is dropped.

    Returns:
        (rows, row_tokens) int32.
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
    """A UTF-8 text file for reading, unpacked on the way where its name ends in .xz."""
    if file.suffix == ".xz":
        return lzma.open(file, "rt", encoding="utf-8")
    return file.open(encoding="utf-8")
