"""Policy for invalid rows: stop at the first one, or write and count them."""

from collections.abc import Sequence
from typing import Literal

from service.cli.errors import RowError
from service.cli.formats.answers import parse_problem
from service.cli.formats.base import Block, Write, row_label

OnError = Literal["error", "report"]


class ErrorPolicy:
    """Passes answers on to a writer and applies the policy to the problems among them.

    Args:
        write: writes rows with their answers.
        name: name of the input, for error messages.
        on_error: "error" stops at the first problem, after the answers before it are written;
            "report" writes problems like other answers.

    Attributes:
        rows: number of rows written.
        count: number of problems.
    """

    def __init__(self, write: Write, name: str, on_error: OnError) -> None:
        self._write = write
        self._name = name
        self._on_error = on_error
        self.rows = self.count = 0

    def write(self, block: Block, answers: Sequence[bytes]) -> None:
        """Write rows with their answers.

        Raises:
            RowError: an answer is a problem and the policy is "error".
        """
        for place, answer in enumerate(answers):
            problem = parse_problem(answer)
            if problem is None:
                continue
            self.count += 1
            if self._on_error == "error":
                if place:
                    self._write(block.slice(0, place), answers[:place])
                label = row_label(self._name, block.first + place)
                raise RowError(f"{label}: {problem.message}")
        self._write(block, answers)
        self.rows += len(block)

    def __str__(self) -> str:
        rows = "1 row" if self.rows == 1 else f"{self.rows} rows"
        return f"{rows}, {self.count} with an error" if self.count else rows
