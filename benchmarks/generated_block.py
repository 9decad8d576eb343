"""Block of a page that a script writes between two marker comments."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from fillmask.bundles.bundle import default_bundle_path

MODEL_CARD = default_bundle_path() / "MODEL_CARD.md"
END = "<!-- end -->\n"


def read(page: Path, script: str) -> str:
    """Return the text of a script's block.

    Raises:
        ValueError: the page does not have this block.
    """
    return _split(page, script)[1]


def write(page: Path, script: str, text: str) -> None:
    """Replace the text of a script's block.

    Raises:
        ValueError: the page does not have this block.
    """
    before, _, after = _split(page, script)
    page.write_text(f"{before}{text}\n{after}", encoding="utf-8")


def _split(page: Path, script: str) -> tuple[str, str, str]:
    begin = f"<!-- begin: benchmarks/{script}.py -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    inside, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"{page.name} must contain the lines {begin.strip()} and {END.strip()}")
    return before + begin, inside, END + after


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table in Markdown, whose first column is left-aligned and the others right-aligned.

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
