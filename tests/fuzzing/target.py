"""The interface of a target, the mutations and checks that targets share, and one run."""

import atexit
import importlib
import json
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

NAMES = ("json_bodies", "binary_bodies", "bundle", "tokenizer", "config")
MAX_CPU_S = 1.0  # CPU time, because the wall time of an input depends on the load of the machine
MAX_MESSAGE_CHARS = 1_000
MutateBytes = Callable[[bytes], bytes]
_EXTREMES: tuple[Any, ...] = (
    *(None, True, False, "", [], {}, 0, 1, -1, 255, 2**31, 2**63, -(2**63) - 1, 10**30, 10**400),
    *(0.5, -0.0, 1e308, 1e-320, float("inf"), float("nan"), "\n", "\ud800", "é😀", "▁", "Ġ"),
)
_MANY = (2, 2, 3, 5, 40, 40, 40, 900)


class FindingError(AssertionError):
    """Failure of a property that every input must have."""


class Target(ABC):
    """A function under test, with the seeds and mutations of its inputs.

    Attributes:
        more_words: texts beyond those of the seeds that mutations insert.
    """

    more_words: Sequence[str] = ()

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
        """Return a changed document, or changed bytes if the input is no document."""
        try:
            root = [json.loads(data)]
            for _ in range(draw.choice((1, 1, 2, 4))):
                self._change(root, draw, mutate_bytes)
            text = json.dumps(root[0], ensure_ascii=draw.random() < 0.5)
        except (ValueError, RecursionError):  # or the changed document is too deep or too long
            return mutate_bytes(data)
        if draw.random() < 0.05:  # a field twice, or broken syntax
            text = text.replace(", ", f", {text[draw.randrange(len(text)) :][:20]}, ", 1)
        return text.encode(errors="surrogatepass")

    @cached_property
    def words(self) -> list[str]:
        """Names and texts of the seeds, and further ones."""
        found = dict.fromkeys(self.more_words)
        for seed in self.seeds():
            text = seed[seed.index(b"{") :].decode(errors="ignore")
            document, _ = json.JSONDecoder().raw_decode(text)
            for holder, name in _places([document]):
                found |= {one: None for one in (name, holder[name]) if isinstance(one, str)}
        return list(found)

    def _change(self, root: list[Any], draw: Random, mutate_bytes: MutateBytes) -> None:
        """Change one value. Random bytes rarely pass a parser."""
        places = list(_places(root))
        holder, name = draw.choice(places)
        value = holder[name]
        word = draw.choice(self.words)
        kind = draw.randrange(14)
        if kind < 2:
            holder[name] = draw.choice((word, copy(draw.choice(_EXTREMES)), draw.randrange(64)))
        elif kind == 2:
            other, at = draw.choice(places)
            holder[name] = json.loads(json.dumps(other[at]))  # a copy without cycles
        elif kind == 3 and holder is not root:
            del holder[name]
        elif kind == 4 and isinstance(value, dict):
            value[word] = copy(draw.choice((*_EXTREMES, *value.values())))
        elif kind == 5 and isinstance(holder, dict):
            holder[word] = holder.pop(name)
        elif kind == 6:
            holder[name] = _many(value, draw)
        elif isinstance(value, str):
            changed = mutate_bytes(value.encode(errors="surrogatepass"))
            holder[name] = changed.decode(errors="replace")
        elif isinstance(value, int | float):
            holder[name] = draw.choice((value + 1, value - 1, -value, value * 2))


def _places(root: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place in a document, as a list or an object and its index or name."""
    left = [root]
    while left:
        holder = left.pop()
        for name in range(len(holder)) if isinstance(holder, list) else list(holder):
            yield holder, name
            if isinstance(holder[name], list | dict):
                left.append(holder[name])


def _many(value: Any, draw: Random) -> Any:
    count = draw.choice(_MANY)
    kind = draw.randrange(3)
    if kind == 0:
        return [value] * min(count, 1 + 20_000 // len(json.dumps(value)))
    if kind == 1:
        return {str(number): number for number in range(count)}
    for _ in range(count):
        value = [value]
    return value


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
