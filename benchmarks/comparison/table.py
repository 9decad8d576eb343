"""A table of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The first column to the left, the others to the right.

    Raises:
        ValueError: a row has another number of cells than the header.
    """
    lines = [_line(header), _line(["---"] + ["--:"] * (len(header) - 1))]
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"{len(row)} cells under {len(header)} headings: {row}")
        lines.append(_line(row))
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
