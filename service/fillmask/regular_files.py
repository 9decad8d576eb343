"""Reading of files that someone else may replace by a FIFO, a directory or a very large file."""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Opening a FIFO waits for a writer without this flag, which Windows lacks.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class IrregularFileError(OSError):
    """Error for a path that leads to something other than a regular file.

    Attributes:
        kind: noun phrase for what the path leads to.
    """

    def __init__(self, path: Path, mode: int) -> None:
        self.kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        super().__init__(errno.EINVAL, f"{self.kind} instead of a regular file", str(path))


class FileTooLargeError(OSError):
    """Error for a file with more bytes than its reader allows."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        super().__init__(errno.EFBIG, f"more than {most_bytes} bytes", str(path))


def open_regular_file(path: Path) -> BufferedReader:
    """Open a regular file or a link to one, without waiting for anything else.

    Raises:
        IrregularFileError: the path leads to something other than a regular file.
        OSError: the file is missing or unreadable.
    """
    _check_kind(path, path.stat().st_mode)  # opening a device may have effects
    stream = open(os.open(path, _FLAGS), "rb")  # noqa: PTH123, SIM115 - no other way takes flags
    try:
        _check_kind(path, os.fstat(stream.fileno()).st_mode)  # of what has been opened
    except BaseException:
        stream.close()
        raise
    return stream


def read_regular_file(path: Path, most_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        FileTooLargeError: the file has more than `most_bytes` bytes.
        OSError: as from `open_regular_file`.
    """
    with open_regular_file(path) as stream:
        content = stream.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise FileTooLargeError(path, most_bytes)
    return content


def _check_kind(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise IrregularFileError(path, mode)
