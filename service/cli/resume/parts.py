"""The answers of a job so far: files that are whole or not there, one behind the other.

A part is called by the number of its first row and that of the row after its last.
"""

import contextlib
import re
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from service.cli.errors import CommandError
from service.cli.formats.base import Block
from service.cli.formats.durable_files import create, replace_durably, sync

PART_NAME = re.compile(r"(\d{12,})-(\d{12,})\.jsonl")
UNFINISHED = "unfinished"
# whichever comes first: what a kill costs, and what a disk is asked to write at once
_ROWS, _SECONDS = 4096, 10.0


class PartFiles:
    """The parts of a job in its directory.

    Args:
        directory: there already.
        first: number of the job's first row.
        rows: most of a part.
        seconds: after which a part is ended.

    Attributes:
        next_row: the number of the first row without an answer.
    """

    def __init__(
        self, directory: Path, first: int, *, rows: int = _ROWS, seconds: float = _SECONDS
    ) -> None:
        self._directory = directory
        self._first = first
        self._most_rows = rows
        self._most_seconds = seconds
        self._lock = threading.Lock()  # a write may still run when the job is told to stop
        self._stream: BinaryIO | None = None
        self._unfinished_rows = 0
        self._begun_s = 0.0
        (directory / UNFINISHED).unlink(missing_ok=True)
        self._paths, self.next_row = self._whole()

    def write(self, block: Block, answers: Sequence[bytes]) -> None:
        """Take the answers to the rows that come next."""
        with self._lock:
            if self._stream is None:
                self._stream = create(self._directory / UNFINISHED)
                self._begun_s = time.monotonic()
            try:
                self._stream.writelines(answer + b"\n" for answer in answers)
            except OSError:
                self._drop()  # nobody knows what is in it
                raise
            self._unfinished_rows += len(block)
            passed_s = time.monotonic() - self._begun_s
            if self._unfinished_rows >= self._most_rows or passed_s >= self._most_seconds:
                self._end_part()

    def commit(self) -> None:
        """Have all that was written on the disk."""
        with self._lock:
            self._end_part()

    def answers(self) -> Iterator[bytes]:
        """All of them in order.

        Raises:
            CommandError: a part is not what it was written as.
        """
        for path, rows in self._paths:
            with path.open("rb") as stream:
                lines = 0
                for line in stream:
                    lines += 1
                    yield line.removesuffix(b"\n")
            if lines != rows:
                raise CommandError(
                    f"{path} has {lines} lines, and not {rows}; start anew with --restart."
                )

    def _drop(self) -> None:
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.close()
        self._stream, self._unfinished_rows = None, 0

    def _end_part(self) -> None:
        if self._stream is None:
            return
        rows, self._unfinished_rows = self._unfinished_rows, 0
        stream, self._stream = self._stream, None
        with stream:
            sync(stream, self._directory / UNFINISHED)
        end = self.next_row + rows
        path = self._directory / f"{self.next_row:012}-{end:012}.jsonl"
        replace_durably(self._directory / UNFINISHED, path)
        self._paths.append((path, rows))
        self.next_row = end

    def _whole(self) -> tuple[list[tuple[Path, int]], int]:
        """The parts that follow each other from the first row on, and where they end.

        A part that follows none is of no use: what is missing before it is computed with it.
        """
        found: list[tuple[Path, int]] = []
        end = self._first
        for path in sorted(self._directory.iterdir()):
            if name := PART_NAME.fullmatch(path.name):
                start, stop = map(int, name.groups())
                if start == end:
                    found.append((path, stop - start))
                    end = stop
                else:
                    path.unlink()
        return found, end
