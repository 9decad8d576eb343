"""Block of a page that a script writes between two marker comments."""

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
