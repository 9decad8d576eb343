"""Resumable jobs, whose answers lie in a file beside the output until they are complete.

The file only grows. Its first line tells what determines the answers, and each other line is the
answer of a row. Lines end in a checksum, so that what a crash has cut is computed again.
"""

import hashlib
import json
import os
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fillmask import __version__
from fillmask.bundles.bundle import DESCRIPTION_FILE, Bundle
from fillmask.cli.commands import RowsCommand
from fillmask.cli.durable_files import create, replace_durably, sync, sync_directory
from fillmask.cli.errors import CommandError, RetryError
from fillmask.cli.formats.base import Block
from fillmask.errors import quote

if os.name == "posix":
    import fcntl

INPUT = "input"
_START = b'{"job": {'
_JOINED = b'"joined"'  # line after the last answer, of a complete output
# Answers are saved after this many rows, bytes or seconds, whichever comes first. These limits
# bound the work that a killed process loses.
_ROWS, _BYTES, _SECONDS = 4096, 2**24, 10.0


def fingerprint(inputs: Sequence[Path], command: RowsCommand, bundle: Bundle) -> dict[str, Any]:
    """Return all values that determine the answers of a job."""
    # The hash of bundle.json is enough, because bundle.json has the hashes of the other files.
    return {
        "version": __version__,
        INPUT: " ".join(map(_sha256, inputs)),
        "task": command.task,
        "field": command.field,
        "text_pair_column": command.text_pair_column,
        "parameters": dict(command.parameters),
        "bundle": _sha256(bundle.path / DESCRIPTION_FILE),
        "shard": str(command.shard),
        **asdict(command.dialect),
        "output_prefix": command.output_prefix,
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def answers_file(output: Path) -> Path:
    """Return the path of the file that has the answers of an unfinished output."""
    return output.with_name(f"{output.name}.parts")


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """Create the file for the answers of an output and lock it until the `with` block ends.

    Raises:
        RetryError: another process has locked the file.
        CommandError: the file belongs to the user.
    """
    path = answers_file(output)
    joined = _joined_file(path)
    if path.is_dir() or (joined.exists() and not path.exists()):
        raise _foreign(path if path.is_dir() else joined)
    with path.open("ab") as stream:
        if os.name == "posix":
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RetryError(
                    f"Another process is writing {output.name}; wait until it ends."
                ) from error
            except OSError:
                pass  # some network file systems have no locks
        yield


def _joined_file(answers: Path) -> Path:
    """Return the path of a complete output before it gets its own name."""
    return answers.with_suffix(".joined")


class Job:
    """A job whose file of answers exists and is locked.

    Args:
        description: what determines the answers, stored as JSON.
        restart: discard the saved answers.

    Attributes:
        rows: number of rows with a saved answer.
        is_published: whether an earlier process has completed the output.

    Raises:
        CommandError: the saved answers belong to another job, or the file to the user.
    """

    def __init__(
        self,
        output: Path,
        description: Mapping[str, Any],
        *,
        restart: bool = False,
        save_rows: int = _ROWS,
        save_seconds: float = _SECONDS,
    ) -> None:
        self._path = answers_file(output)
        self.joined = _joined_file(self._path)
        self._output = output
        self._save_rows = save_rows
        self._save_seconds = save_seconds
        self._lock = threading.Lock()  # cancelling a job does not wait for a running write
        self._unsaved: list[bytes] = []
        self._unsaved_bytes = 0
        self._last_save_s = time.monotonic()
        self.rows = 0
        self.is_published = False
        self._find_answers(description, restart=restart)
        if not (self.rows or self.is_published):
            self.joined.unlink(missing_ok=True)
            os.truncate(self._path, 0)
            self._append([json.dumps({"job": dict(description)}, ensure_ascii=False).encode()])
            sync_directory(self._path.parent)

    def write(self, _block: Block, answers: Sequence[bytes]) -> None:
        """Add the answers of the next rows, and save them if they are many or old."""
        with self._lock:
            self._unsaved += answers
            self._unsaved_bytes += sum(map(len, answers))
            if (
                len(self._unsaved) >= self._save_rows
                or self._unsaved_bytes >= _BYTES
                or time.monotonic() - self._last_save_s >= self._save_seconds
            ):
                self._save()

    def save(self) -> None:
        """Save all answers on the disk."""
        with self._lock:
            self._save()

    def answers(self) -> Iterator[bytes]:
        """Read all saved answers in order."""
        with self._path.open("rb") as stream:
            stream.readline()
            for line in stream:
                yield line.rpartition(b"\t")[0]

    def publish(self) -> None:
        self._append([_JOINED])
        replace_durably(self.joined, self._output)

    def remove(self) -> None:
        self.joined.unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)

    def _save(self) -> None:
        # after an error, the content of the file is unknown, and the answers are computed again
        answers, self._unsaved, self._unsaved_bytes = self._unsaved, [], 0
        self._last_save_s = time.monotonic()
        if answers:
            self._append(answers)
            self.rows += len(answers)

    def _append(self, lines: Sequence[bytes]) -> None:
        with create(self._path, "a") as stream:
            stream.writelines(b"%b\t%08x\n" % (line, zlib.crc32(line)) for line in lines)
            sync(stream, self._path)

    def _find_answers(self, description: Mapping[str, Any], *, restart: bool) -> None:
        """Count the saved answers, of which a crash may have cut the last ones."""
        is_joined = False
        with self._path.open("rb") as stream:
            first = stream.readline()
            if first[: len(_START)] != _START[: len(first)]:
                raise _foreign(self._path)
            before, size = _content(first), len(first)
            if before is None or restart:
                return
            for line in stream:
                content = _content(line)
                is_joined = content == _JOINED
                if content is None or is_joined:
                    break
                self.rows += 1
                size += len(line)
        if self.rows or is_joined:
            self._reject_other_job(json.loads(before)["job"], description)
        self.is_published = is_joined and self._output.exists() and not self.joined.exists()
        if not self.is_published:
            os.truncate(self._path, size)

    def _reject_other_job(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        differences = [
            f"{name} {_quote_value(before.get(name))} instead of {_quote_value(value)}"
            if name != INPUT
            else "another input"
            for name, value in now.items()
            if before.get(name) != value
        ]
        if differences:
            raise CommandError(
                f"{self._path} belongs to another job, with {' and '.join(differences)}. Run "
                "that job's command to continue it, or use --restart to discard it."
            )


def _content(line: bytes) -> bytes | None:
    """Return a line without its checksum, or None if it is damaged."""
    content, _, checksum = line.rpartition(b"\t")
    return content if checksum == b"%08x\n" % zlib.crc32(content) else None


def _foreign(path: Path) -> CommandError:
    return CommandError(f"{path} does not belong to a job; move it away.")


def _quote_value(value: object) -> str:
    return quote(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
