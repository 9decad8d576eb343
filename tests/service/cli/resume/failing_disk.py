"""Disk whose operations fail or end the process."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from unittest import mock

from fillmask.cli import durable_files


class KilledError(BaseException):
    """End of the process, after which it changes no file."""


@dataclass
class Disk:
    """File operations of the command, one of which fails.

    Attributes:
        fails_at: number of the operation that fails, from 1. 0 means that none fails.
        kills: whether the operation ends the process. Otherwise it raises an OSError once.
        kept: share of a write, and of the files that nobody has flushed, that remains after a
            crash.
    """

    fails_at: int = 0
    kills: bool = True
    kept: float = 1.0
    operations: int = 0

    def __post_init__(self) -> None:
        self.is_dead = False
        self._unflushed: set[int] = set()

    def operate(self) -> None:
        if self.is_dead:
            raise KilledError
        self.operations += 1
        if self.operations == self.fails_at:
            self.is_dead = self.kills
            raise KilledError if self.kills else OSError(28, "No space left on device")

    @contextmanager
    def mounted(self, directory: Path) -> Iterator[Self]:
        """Let the operations of the `with` block pass through this object."""
        write, create = durable_files._NamedFile.write, durable_files._NamedFile.__init__

        def write_part(file: Any, content: Any) -> int:
            part = bytes(content)[: int(self.kept * len(content))]
            if part and self.operations + 1 == self.fails_at:
                # the system writes a part, and fails at the rest
                self.operations += 1
                self.fails_at += 1
                content = part
            else:
                self.operate()
            self._unflushed.add(os.fstat(file.fileno()).st_ino)
            return write(file, content)

        def flush(descriptor: int) -> None:
            self.operate()
            self._unflushed.discard(os.fstat(descriptor).st_ino)

        def create_file(file: Any, path: Path, mode: str) -> None:
            self.operate()
            create(file, path, mode)

        with (
            mock.patch.object(durable_files._NamedFile, "__init__", create_file),
            mock.patch.object(durable_files._NamedFile, "write", write_part),
            mock.patch.object(os, "fsync", flush),
            mock.patch.object(Path, "replace", self._counted(Path.replace)),
            mock.patch.object(Path, "unlink", self._counted(Path.unlink)),
            mock.patch.object(os, "truncate", self._counted(os.truncate)),
        ):
            yield self
        if self.is_dead:
            for path in directory.rglob("*"):
                if path.stat().st_ino in self._unflushed:
                    os.truncate(path, int(self.kept * path.stat().st_size))

    def _counted(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **keywords: Any) -> Any:
            self.operate()
            return operation(*arguments, **keywords)

        return counted
