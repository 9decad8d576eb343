"""Formatter of Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table.

    The first column is left-aligned. The other columns are right-aligned.

    Raises:
        ValueError: a row and the header have different numbers of cells.
    """
    lines = [_line(header), _line(["---"] + ["--:"] * (len(header) - 1))]
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"a row must have {len(header)} cells (got {row})")
        lines.append(_line(row))
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
