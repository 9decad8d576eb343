"""What is written: each row as it was, with its fills beside its own fields."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from service.command.errors import CommandError
from service.command.rows import Block
from service.errors import quote
from service.tasks.options import FillOptions

FILLS, ERROR = "fills", "error"

# takes rows and their answers, in order
Write = Callable[[Block, Sequence[bytes]], None]


@dataclass(frozen=True, slots=True)
class Given:
    """What rows are given.

    Attributes:
        options: how they are filled where they do not say it themselves.
        errors: whether a row may have an error in place of fills.
    """

    options: FillOptions
    errors: bool

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of a row's new fields."""
        return (FILLS, ERROR) if self.errors else (FILLS,)


class Output(Protocol):
    """A format that is written.

    Attributes:
        reserved: what no row may call a field of its own, where that shows only row by row. Such
            a row is reported or ends the command.
    """

    reserved: tuple[str, ...]

    def writing(self, path: Path) -> AbstractContextManager[Write]:
        """Write a file; at the end of the `with` it is on the disk.

        Raises:
            CommandError: a value has no place in this format.
        """


def refuse_clash(called: str, columns: Iterable[str], own: Iterable[str]) -> None:
    """Refuse columns whose names are those of what is written.

    Args:
        called: what has them.
        columns: of the input.
        own: what is written beside them.

    Raises:
        CommandError: two have the same name.
    """
    if clash := clash_of(columns, own):
        raise CommandError(f"{called} {clash}")


def clash_of(columns: Iterable[str], own: Iterable[str]) -> str | None:
    """The end of a sentence about a name that is taken; None where all are free."""
    if not (clash := sorted(set(columns) & set(own))):
        return None
    return (
        f"has a field {quote(clash[0])}, and what is written has one of its own of that name; "
        "rename it."
    )
