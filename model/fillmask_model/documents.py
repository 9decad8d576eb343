"""Documents of text files.

Text files have one paragraph per line and a blank line between documents. Files with the suffix
`.xz` are compressed.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO


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


def open_text(file: Path) -> IO[str]:
    """Open a UTF-8 text file, which is compressed if its suffix is .xz."""
    if file.suffix == ".xz":
        return lzma.open(file, "rt", encoding="utf-8")
    return file.open(encoding="utf-8")
