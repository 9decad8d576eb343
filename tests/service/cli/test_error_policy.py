"""Policy for invalid rows: end at the first invalid row, or count invalid rows and continue."""

from collections.abc import Sequence

import pytest

from fillmask.cli.error_policy import ErrorPolicy
from fillmask.cli.errors import RowError
from fillmask.cli.formats.answers import Problem
from fillmask.cli.formats.base import Block
from fillmask.cli.formats.jsonl import JsonBlock

ANSWERS = [b"[]", b"[]", Problem("bad").line, b"[]", Problem("worse").line]


class Written:
    """Writer that records its rows and answers."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.answers: list[bytes] = []

    def write(self, block: Block, answers: Sequence[bytes]) -> None:
        self.numbers += range(block.first, block.first + len(block))
        self.answers += answers


def test_first_problem_ends_the_job() -> None:
    # The output has the rows before the problem. Row numbers in messages start at 1.
    written = Written()
    problems = ErrorPolicy(written.write, "texts.jsonl", "error")
    problems.write(JsonBlock(10, [b"{}"] * 2), ANSWERS[:2])
    with pytest.raises(RowError) as caught:
        problems.write(JsonBlock(12, [b"{}"] * 5), ANSWERS)
    assert str(caught.value) == "texts.jsonl, row 15: bad"
    assert written.numbers == [10, 11, 12, 13]


def test_a_problem_in_the_first_row_of_a_block() -> None:
    # The output has no row of the block.
    written = Written()
    problems = ErrorPolicy(written.write, "texts.jsonl", "error")
    with pytest.raises(RowError, match="row 1: bad"):
        problems.write(JsonBlock(0, [b"{}"]), [Problem("bad").line])
    assert written.numbers == []


def test_problems_are_reported() -> None:
    written = Written()
    problems = ErrorPolicy(written.write, "texts.jsonl", "report")
    problems.write(JsonBlock(0, [b"{}"] * 5), ANSWERS)
    assert (written.numbers, written.answers) == (list(range(5)), ANSWERS)
    assert str(problems) == "5 rows, 2 with an error"


def test_a_row_is_no_rows() -> None:
    problems = ErrorPolicy(Written().write, "texts.jsonl", "error")
    assert str(problems) == "0 rows"
    problems.write(JsonBlock(0, [b"{}"]), [b"[]"])
    assert str(problems) == "1 row"
