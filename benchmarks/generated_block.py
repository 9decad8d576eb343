"""The part of a page that a script writes, between two marks."""

from pathlib import Path

from service.bundles.bundle import default_bundle_path

MODEL_CARD = default_bundle_path() / "MODEL_CARD.md"
END = "<!-- end -->\n"


def read(page: Path, script: str) -> str:
    """Return the text between the script's marks.

    Raises:
        ValueError: the page has no such marks.
    """
    return _split(page, script)[1]


def write(page: Path, script: str, text: str) -> None:
    """Put a text in the place of what is between the script's marks.

    Raises:
        ValueError: the page has no such marks.
    """
    before, _, after = _split(page, script)
    page.write_text(f"{before}{text}\n{after}", encoding="utf-8")


def _split(page: Path, script: str) -> tuple[str, str, str]:
    begin = f"<!-- begin: benchmarks/{script}.py -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    inside, ended, after = rest.partition(END)
    if not found or not ended:
        raise ValueError(f"{page.name} has no part of {script}")
    return before + begin, inside, END + after
