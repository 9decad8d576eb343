"""What a module of this package declares about its format, for the registry in by_extension.py."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fillmask.cli.formats.base import OutputOptions, Rows, RowWriter
from fillmask.cli.formats.lines import OpenStream


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read.

    Attributes:
        open: function that opens the file at its start, decompressed.
        field: field name for texts that have no name in the file.
    """

    path: Path
    open: OpenStream
    field: str

    @property
    def name(self) -> str:
        """Name of the file, for error messages."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files.

    Attributes:
        extensions: ends of the names of files, in lower case.
        read: function that opens the rows of a file from any row on, which is what resuming needs.
        write: function that returns the writer of rows with their results. None for a format that
            the command only reads.
        compressible: True if the command reads compressed files of this format.
    """

    extensions: tuple[str, ...]
    read: Callable[[Source], Rows]
    write: Callable[[Rows, OutputOptions], RowWriter] | None = None
    compressible: bool = True
