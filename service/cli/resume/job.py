"""The identity of a job, so that only the same job is resumed."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service import __version__
from service.bundles.bundle import DESCRIPTION_FILE, Bundle
from service.cli.errors import CommandError, RetryError
from service.cli.formats.durable_files import replace_durably, write_json
from service.cli.resume.parts import PART_NAME, UNFINISHED
from service.cli.row_options import Shard
from service.errors import quote


def fingerprint(
    path: Path, field: str, parameters: Mapping[str, Any], bundle: Bundle, shard: Shard
) -> dict[str, Any]:
    """What decides of a job's answers; a file of the same content is the same input."""
    # of the description alone: it has those of the other files, which have been verified
    return {
        "version": __version__,
        "input": _sha256(path),
        "field": field,
        "parameters": dict(parameters),
        "bundle": _sha256(bundle.path / DESCRIPTION_FILE),
        "shard": str(shard),
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if os.name == "posix":
    import fcntl

INPUT = "input"
_DESCRIPTION, _LOCK, _JOINED = "job.json", "lock", "joined"
# the description goes last: as long as it is there, it is known what the rest is
_FILES = (UNFINISHED, _JOINED, f"{_DESCRIPTION}.draft", _DESCRIPTION)


class Job:
    """A job whose directory is there, and locked.

    Args:
        output: what is to be written.
        description: what makes it this job and no other; goes into a JSON file.

    Attributes:
        directory: where its parts lie.
        joined: where they are joined.
    """

    def __init__(self, output: Path, description: Mapping[str, Any]) -> None:
        self.directory = parts_directory(output)
        self.joined = self.directory / _JOINED
        self._output = output
        self._description = dict(description)

    def begin(self, *, restart: bool) -> bool:
        """Begin the job or go on with it; False if all is done and its output has its name.

        Args:
            restart: throw away what is there.

        Raises:
            CommandError: the directory is another job's, or no job's.
        """
        known = None if restart else _read(self.directory / _DESCRIPTION)
        if known is None or not (known.get("joined") or self._has_parts()):
            self._refuse_strangers()
            self._remove_files()
            self._describe(joined=False)
            return True
        self._refuse_differences(known.get("job"))
        return not known.get("joined") or self.joined.exists() or not self._output.exists()

    def deliver(self) -> None:
        """Give what was joined the output's name."""
        self._describe(joined=True)
        replace_durably(self.joined, self._output)

    def end(self) -> None:
        """Remove the directory; there is no way back."""
        self._remove_files()
        (self.directory / _LOCK).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody has put a file there meanwhile
            self.directory.rmdir()

    def _describe(self, *, joined: bool) -> None:
        write_json(self.directory / _DESCRIPTION, {"job": self._description, "joined": joined})

    def _remove_files(self) -> None:
        for path in self.directory.iterdir():
            if PART_NAME.fullmatch(path.name):
                path.unlink()
        for name in _FILES:
            (self.directory / name).unlink(missing_ok=True)

    def _has_parts(self) -> bool:
        """Whether anything is done that could be lost."""
        return any(PART_NAME.fullmatch(path.name) for path in self.directory.iterdir())

    def _refuse_strangers(self) -> None:
        for path in sorted(self.directory.iterdir()):
            if path.name not in {*_FILES, _LOCK} and not PART_NAME.fullmatch(path.name):
                raise CommandError(
                    f"{self.directory} holds {quote(path.name)}, which is no part of a job; move "
                    "it away."
                )

    def _refuse_differences(self, known: object) -> None:
        before = known if isinstance(known, dict) else {}
        differences = [
            f"{name} {_show(before.get(name))} and not {_show(value)}"
            if name != INPUT
            else "another input"
            for name, value in self._description.items()
            if before.get(name) != value
        ]
        if differences:
            raise CommandError(
                f"{self.directory} holds what is done of another job, with "
                f"{' and '.join(differences)}. Its own command goes on with it; --restart throws "
                "it away."
            )


def parts_directory(output: Path) -> Path:
    """Where the parts of an output lie."""
    return output.with_name(f"{output.name}.parts")


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """Make the directory of an output's parts, and keep others out of it.

    Raises:
        RetryError: another process is at work.
    """
    directory = parts_directory(output)
    directory.mkdir(exist_ok=True)
    with (directory / _LOCK).open("w") as stream:
        if os.name == "posix":
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RetryError(f"Another process is at work on {output.name}.") from error
            except OSError:
                pass  # there are network file systems without locks
        yield


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CommandError(f"{path} is not valid JSON; start anew with --restart.") from error
    return content if isinstance(content, dict) else {}


def _show(value: object) -> str:
    return quote(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
