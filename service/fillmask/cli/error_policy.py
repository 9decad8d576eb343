"""Error policy, which stops the command at the first invalid row or reports all invalid rows."""

from collections.abc import Sequence

from fillmask.cli.commands import OnError
from fillmask.cli.errors import CommandError, RowError
from fillmask.cli.formats.base import Block, row_label
from fillmask.cli.formats.output import Write, problem_of


class ErrorPolicy:
    """Wrapper of a writer that applies the policy for invalid rows of the input `name`.

    With "error", it writes the answers before the first problem and then raises an error. With
    "report", it writes problems like other answers.
    """

    def __init__(self, write: Write, name: str, on_error: OnError) -> None:
        self._write = write
        self._name = name
        self._on_error = on_error
        self._rows = self._problems = 0

    def write(self, block: Block, answers: Sequence[bytes]) -> None:
        """Write rows with their answers.

        Raises:
            RowError: an answer is a problem and the policy is "error".
        """
        for place, answer in enumerate(answers):
            problem = problem_of(answer)
            if problem is None:
                continue
            self._problems += 1
            if self._on_error == "error":
                if place:
                    self._write(block.slice(0, place), answers[:place])
                raise RowError(f"{row_label(self._name, block.first + place)}: {problem}")
        self._write(block, answers)
        self._rows += len(block)

    def check(self) -> None:
        """Reject an output without a result.

        Raises:
            CommandError: there are rows, and all of them have a problem.
        """
        if self._rows and self._problems == self._rows:
            raise CommandError(
                f"{self._name}: every row has an error, which the output tells; correct the "
                "rows or the options."
            )

    def __str__(self) -> str:
        rows = "1 row" if self._rows == 1 else f"{self._rows} rows"
        return f"{rows}, {self._problems} with an error" if self._problems else rows
