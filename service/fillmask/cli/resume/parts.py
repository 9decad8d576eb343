"""Part files, which contain the saved answers of a job. A part is either complete or absent.

The name of a part contains the index of its first row and the index after its last row.
"""

import contextlib
import re
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import Block
from fillmask.cli.formats.durable_files import create, replace_durably, sync

PART_NAME = re.compile(r"(\d{12,})-(\d{12,})\.jsonl")
UNFINISHED = "unfinished"
# A part ends after this many rows or seconds, whichever comes first. These limits bound the work
# that a killed process loses and the size of one write to the disk.
_ROWS, _SECONDS = 4096, 10.0


class PartFiles:
    """Part files of a job whose first row has the index `first`.

    A write completes the open part if the part has at least `rows` rows or is at least `seconds`
    seconds old. `next_row` is the index of the first row without a saved answer.
    """

    def __init__(
        self, directory: Path, first: int, *, rows: int = _ROWS, seconds: float = _SECONDS
    ) -> None:
        self._max_rows = rows
        self._max_seconds = seconds
        self._lock = threading.Lock()  # cancelling a job does not wait for a running write
        self._stream: BinaryIO | None = None
        self._unfinished = directory / UNFINISHED
        self._unfinished_rows = 0
        self._begun_s = 0.0
        self._unfinished.unlink(missing_ok=True)
        self._parts: list[tuple[Path, int]] = []  # with their numbers of rows
        self.next_row = first
        for path in sorted(directory.iterdir()):
            if name := PART_NAME.fullmatch(path.name):
                start, stop = map(int, name.groups())
                if start == self.next_row:
                    self._parts.append((path, stop - start))
                    self.next_row = stop
                else:  # after a gap, whose rows and all later ones are processed again
                    path.unlink()

    def write(self, block: Block, answers: Sequence[bytes]) -> None:
        with self._lock:
            if self._stream is None:
                self._stream = create(self._unfinished)
                self._begun_s = time.monotonic()
            try:
                self._stream.writelines(answer + b"\n" for answer in answers)
            except OSError:  # the content of the file is unknown
                with contextlib.suppress(OSError):
                    self._stream.close()
                self._stream, self._unfinished_rows = None, 0
                raise
            self._unfinished_rows += len(block)
            passed_s = time.monotonic() - self._begun_s
            if self._unfinished_rows >= self._max_rows or passed_s >= self._max_seconds:
                self._end_part()

    def commit(self) -> None:
        """Complete the open part, so that all answers are on the disk."""
        with self._lock:
            self._end_part()

    def answers(self) -> Iterator[bytes]:
        """Read all saved answers in order.

        Raises:
            CommandError: a part has a wrong number of lines.
        """
        for path, rows in self._parts:
            with path.open("rb") as stream:
                lines = 0
                for line in stream:
                    lines += line.endswith(b"\n")  # a damaged disk may cut the last line
                    yield line.removesuffix(b"\n")
            if lines != rows:
                raise CommandError(
                    f"The number of lines in {path} must be {rows} (got {lines}); start again with "
                    "--restart."
                )

    def _end_part(self) -> None:
        if self._stream is None:
            return
        rows, self._unfinished_rows = self._unfinished_rows, 0
        stream, self._stream = self._stream, None
        with stream:
            sync(stream, self._unfinished)
        end = self.next_row + rows
        path = self._unfinished.with_name(f"{self.next_row:012}-{end:012}.jsonl")
        replace_durably(self._unfinished, path)
        self._parts.append((path, rows))
        self.next_row = end
