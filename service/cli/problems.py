"""What becomes of rows that are not answered with fills: they end the job, or are counted."""

from collections.abc import Sequence
from typing import Literal

from service.cli.errors import RowError
from service.cli.formats.answers import problem_of
from service.cli.formats.base import Block, Write, row_name

OnError = Literal["error", "report"]


class ErrorPolicy:
    """Lets answers through to where they are written.

    Args:
        write: takes them.
        name: of the file, for errors.
        on_error: whether the first problem is an error, after those before it are written, or
            each is written as well.

    Attributes:
        rows: those that went through.
        count: of the problems among them.
    """

    def __init__(self, write: Write, name: str, on_error: OnError) -> None:
        self._write = write
        self._name = name
        self._on_error = on_error
        self.rows = self.count = 0

    def write(self, block: Block, answers: Sequence[bytes]) -> None:
        """See `Write`.

        Raises:
            RowError: an answer is a problem, and that is an error.
        """
        for place, answer in enumerate(answers):
            problem = problem_of(answer)
            if problem is None:
                continue
            self.count += 1
            if self._on_error == "error":
                if place:
                    self._write(block.part(0, place), answers[:place])
                where = row_name(self._name, block.first + place)
                raise RowError(f"{where}: {problem.sentence}")
        self._write(block, answers)
        self.rows += len(block)

    def __str__(self) -> str:
        rows = "1 row" if self.rows == 1 else f"{self.rows} rows"
        return f"{rows}, {self.count} with an error" if self.count else rows
