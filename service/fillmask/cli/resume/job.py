"""Resumable jobs, each with a directory and an identity."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fillmask import __version__
from fillmask.bundles.bundle import DESCRIPTION_FILE, Bundle
from fillmask.cli.commands import RowsCommand
from fillmask.cli.errors import CommandError, RetryError
from fillmask.cli.formats.durable_files import replace_durably, write_json
from fillmask.cli.resume.parts import PART_NAME, UNFINISHED
from fillmask.errors import quote

if os.name == "posix":
    import fcntl

INPUT = "input"
DESCRIPTION, _LOCK, _JOINED = "job.json", "lock", "joined"
_DRAFT, _DRAFT_START = f"{DESCRIPTION}.draft", b'{\n  "job": '
# The last file to remove is the description, which shows that the other files belong to the job.
_FILES = (UNFINISHED, _JOINED, _DRAFT, DESCRIPTION)


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


class Job:
    """A job with an existing and locked directory.

    Args:
        description: identity of the job, stored as JSON.

    Attributes:
        directory: directory of the part files.
        joined: path of the complete output until `publish` renames it.
    """

    def __init__(self, output: Path, description: Mapping[str, Any]) -> None:
        self.directory = parts_directory(output)
        self.joined = self.directory / _JOINED
        self._output = output
        self._description = dict(description)

    def begin(self, *, restart: bool) -> bool:
        """Start or continue the job, or start it again without the saved answers.

        Returns:
            True if the job has work left. False if the output is already complete.

        Raises:
            CommandError: the directory belongs to another job or contains unknown files.
        """
        known = None if restart else _read_description(self.directory / DESCRIPTION)
        if known is None or not (known["joined"] or self._parts()):
            for path in sorted(self.directory.iterdir()):
                known_name = path.name in {*_FILES, _LOCK} or PART_NAME.fullmatch(path.name)
                if not known_name or not path.is_file():
                    raise _foreign(path)
            self._remove_files()
            self._write_description(joined=False)
            return True
        self._reject_other_job(known["job"])
        return not known["joined"] or self.joined.exists() or not self._output.exists()

    def publish(self) -> None:
        self._write_description(joined=True)
        replace_durably(self.joined, self._output)

    def remove_directory(self) -> None:
        self._remove_files()
        (self.directory / _LOCK).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # other files remain in the directory
            self.directory.rmdir()

    def _write_description(self, *, joined: bool) -> None:
        write_json(self.directory / DESCRIPTION, {"job": self._description, "joined": joined})

    def _parts(self) -> list[Path]:
        return [path for path in self.directory.iterdir() if PART_NAME.fullmatch(path.name)]

    def _remove_files(self) -> None:
        for path in [*self._parts(), *(self.directory / name for name in _FILES)]:
            path.unlink(missing_ok=True)

    def _reject_other_job(self, before: Mapping[str, Any]) -> None:
        differences = [
            f"{name} {_quote_value(before.get(name))} instead of {_quote_value(value)}"
            if name != INPUT
            else "another input"
            for name, value in self._description.items()
            if before.get(name) != value
        ]
        if differences:
            raise CommandError(
                f"{self.directory} belongs to another job, with {' and '.join(differences)}. Run "
                "that job's command to continue it, or use --restart to discard it."
            )


def parts_directory(output: Path) -> Path:
    return output.with_name(f"{output.name}.parts")


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """Create the directory of an output's part files and lock it until the `with` block ends.

    Raises:
        RetryError: another process has locked the directory.
        CommandError: the directory belongs to the user.
    """
    directory = parts_directory(output)
    if directory.exists() and not directory.is_dir():
        raise CommandError(f"{directory} must be a directory (got a file); move it away.")
    directory.mkdir(exist_ok=True)
    lock = directory / _LOCK
    if lock.is_dir():
        raise _foreign(lock)
    is_new = not lock.exists()
    with lock.open("a") as stream:  # keeps the content of a user's file
        if os.name == "posix":
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RetryError(
                    f"Another process is writing {output.name}; wait until it ends."
                ) from error
            except OSError:
                pass  # some network file systems have no locks
        try:
            _reject_directory_of_the_user(directory)
        except CommandError:
            if is_new:
                lock.unlink(missing_ok=True)
            raise
        yield


def _reject_directory_of_the_user(directory: Path) -> None:
    if _read_description(directory / DESCRIPTION) is None:
        for path in sorted(directory.iterdir()):
            if not _is_left_over(path):
                raise _foreign(path)


def _is_left_over(path: Path) -> bool:
    """Return whether a file comes from a process that ended before it described its job."""
    if path.name not in {_LOCK, _DRAFT} or not path.is_file():
        return False
    content = path.read_bytes()
    # a full disk may cut the draft anywhere
    return not content or (
        path.name == _DRAFT and content[: len(_DRAFT_START)] == _DRAFT_START[: len(content)]
    )


def _foreign(path: Path) -> CommandError:
    return CommandError(
        f"{path.parent} contains {quote(path.name)}, which does not belong to a job; move it away."
    )


def _read_description(path: Path) -> dict[str, Any] | None:
    """Return the description of a job, or None if there is no file.

    Raises:
        CommandError: the file is not the description of a job.
    """
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, IsADirectoryError):
        content = None
    fields = content if isinstance(content, dict) else {}
    if not isinstance(fields.get("job"), dict) or not isinstance(fields.get("joined"), bool):
        raise CommandError(
            f"{path} is not the description of a job; move the directory {path.parent} away."
        )
    return fields


def _quote_value(value: object) -> str:
    return quote(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
