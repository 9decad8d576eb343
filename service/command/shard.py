"""A shard: one of several parts of a file's rows, which lie one behind the other."""

import re
from dataclasses import dataclass
from typing import Self

from service.command.errors import CommandError
from service.errors import quote


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of so many.

    Attributes:
        index: its number, from 0.
        count: how many there are.
    """

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `I/N`.

        Raises:
            CommandError: it is none.
        """
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
        if not found or int(found[1]) >= int(found[2]):
            raise CommandError(
                f"--shard is {quote(text)}; allowed is I/N, as in 0/8, with I from 0 to N - 1."
            )
        return cls(int(found[1]), int(found[2]))

    def range_of(self, rows: int) -> tuple[int, int]:
        """Of so many rows its first, and the one after its last."""
        return rows * self.index // self.count, rows * (self.index + 1) // self.count

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


WHOLE = Shard(0, 1)
