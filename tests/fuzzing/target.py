"""The interface of a target, the checks that targets share, and the run of one input."""

import atexit
import importlib
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from tests.fuzzing.mutation import MutateBytes, cross_json, mutate_json

NAMES = ("json_bodies", "binary_bodies", "bundle", "tokenizer", "config")
MAX_CPU_S = 1.0  # CPU time, because the wall time of an input depends on the load of the machine
MAX_MESSAGE_CHARS = 1_000


class FindingError(AssertionError):
    """Failure of a property that every input must have."""


class Target(ABC):
    """A function under test, with the seeds and mutations of its inputs.

    Attributes:
        words: names of fields and other texts that mutations insert.
    """

    words: Sequence[str] = ()

    @abstractmethod
    def seeds(self) -> Iterator[bytes]:
        """Yield valid inputs, from which the fuzzing starts."""

    @abstractmethod
    def check(self, data: bytes) -> None:
        """Read an input and check the result.

        Raises:
            BaseException: the input is a finding. No documented error leaves this method.
        """

    def mutate(self, data: bytes, draw: Random, mutate_bytes: MutateBytes) -> bytes:
        """Return a changed input."""
        return mutate_json(data, draw, self.words, mutate_bytes)

    def cross(self, data: bytes, other: bytes, draw: Random) -> bytes:
        """Return an input with a part of another input."""
        return cross_json(data, other, draw)


def find_target(name: str) -> Target:
    """Import and create a target."""
    target: Target = importlib.import_module(f"tests.fuzzing.targets.{name}").TARGET()
    return target


def run_input(target: Target, data: bytes) -> None:
    """Check an input and the CPU time that it takes.

    Raises:
        BaseException: the input is a finding.
    """
    before_s = time.thread_time()
    target.check(data)
    taken_s = time.thread_time() - before_s
    if taken_s > MAX_CPU_S:
        raise FindingError(f"{len(data)} bytes take {taken_s:.1f} s of CPU time")


def memory_directory() -> Path:
    """Return a new directory in memory where there is one, because writes to disks take 1 ms."""
    shared = Path("/dev/shm")  # noqa: S108 - the only name of this directory
    parent = shared if shared.is_dir() else None
    directory = tempfile.TemporaryDirectory(prefix="fillmask-fuzzing-", dir=parent)
    atexit.register(directory.cleanup)
    return Path(directory.name)


def check_message(text: str, max_chars: int = MAX_MESSAGE_CHARS) -> None:
    """Check that an error message is one line of a bounded length, in valid Unicode.

    Raises:
        FindingError: the message has another form.
    """
    if not 0 < len(text) <= max_chars:
        raise FindingError(f"the message has {len(text)} characters: {text[:200]!r}")
    if "\n" in text or "\r" in text:
        raise FindingError(f"the message has several lines: {text!r}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise FindingError(f"the message has an unpaired surrogate: {text!r}")
