"""Fills of the built-in model for the example sentences of docs/built-in-model.md.

    .venv-dev/bin/python -m benchmarks.quality.examples

The script reads the sentences from the page and writes the fills into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from fastapi.testclient import TestClient

from benchmarks import generated_block
from fillmask.app import create_app
from fillmask.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "built-in-model.md"
HEAD = ["| text | first five fills, and the first one's probability |", "| --- | --- |"]


def main() -> None:
    """Write the table into the page."""
    sentences = [line.split(" | ")[0].strip("| ") for line in rows()]
    generated_block.write(PAGE, "quality/examples", "\n".join([*HEAD, *answered(sentences)]))


def rows() -> list[str]:
    """Return the rows of the page's table."""
    return generated_block.read(PAGE, "quality/examples").splitlines()[len(HEAD) :]


def answered(sentences: Iterable[str]) -> Iterator[str]:
    """Yield a row per sentence with the service's fills."""
    with TestClient(create_app(Settings())) as client:
        for sentence in sentences:
            fills = client.post("/fill-mask", json={"inputs": sentence}).json()
            words = ", ".join(fill["token_str"] for fill in fills)
            yield f"| {sentence} | {words} ({fills[0]['score']:.2f}) |"


if __name__ == "__main__":
    main()
