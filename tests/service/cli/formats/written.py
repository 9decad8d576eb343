"""Outputs of rows with given answers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fillmask.cli.durable_files import write_file
from fillmask.cli.formats.by_extension import is_compressed, make_writer, open_rows
from fillmask.cli.formats.output import Output, problem_answer
from fillmask.cli.tasks import rows_of
from fillmask.tasks.fill_mask.parameters import FillMaskParameters

FILL = {"score": 0.5, "token": 7, "token_str": "a", "sequence": "a b"}


def write(
    source: Path,
    ending: str,
    answers: Sequence[Any],
    options: FillMaskParameters | None = None,
    *,
    errors: bool = False,
    prefix: str | None = None,
) -> Path:
    """Write a file's rows with their answers, which are fills or the text of a problem."""
    rows, output = open_rows(source, "inputs"), source.with_name(f"out.{ending}")
    layout = rows_of("fill-mask").layout(
        options or FillMaskParameters(), row_parameters=rows.row_parameters
    )
    lines = [
        problem_answer(answer) if isinstance(answer, str) else json.dumps(answer).encode()
        for answer in answers
    ]
    writer = make_writer(output, rows, Output(layout, errors, prefix))
    with (
        write_file(output, compressed=is_compressed(output)) as stream,
        writer.write_to(stream) as to,
    ):
        for block in rows.blocks():
            to(block, lines[block.first : block.first + len(block)])
    return output
