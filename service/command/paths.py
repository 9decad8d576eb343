"""Where files are read and written, looked at before anything is done."""

from pathlib import Path

from service.command.errors import CommandError, reason
from service.command.formats import READ, WRITTEN, check_ending
from service.command.job import parts_directory


def check_input(path: Path) -> None:
    """Refuse a file that cannot be read.

    Raises:
        CommandError: it is not there, no file, not readable, or of no format that is read.
    """
    check_ending(path, READ)
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is no file.")
    try:
        path.open("rb").close()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {reason(error)}.") from error


def check_output(path: Path, source: Path, *, overwrite: bool) -> None:
    """Refuse an output that is not to be written.

    Args:
        path: of the output.
        source: the input.
        overwrite: whether an output that is there may be replaced.

    Raises:
        CommandError: it is the input, of no format that is written, or there already, and no job
            that has begun may have put it there; or its directory is not there.
    """
    check_ending(path, WRITTEN)
    if not path.parent.is_dir():
        raise CommandError(f"{path} cannot be written: {path.parent} is no directory.")
    if path.exists() and path.samefile(source):
        raise CommandError(f"{path} is the input, which is not replaced.")
    if not parts_directory(path).exists():
        check_new(path, overwrite=overwrite)


def check_new(path: Path, *, overwrite: bool) -> None:
    """Refuse to replace an output.

    Raises:
        CommandError: it is there, and may not be replaced.
    """
    if path.is_dir():
        raise CommandError(f"{path} is a directory.")
    if path.exists() and not overwrite:
        raise CommandError(f"{path} is there already; --overwrite replaces it.")
