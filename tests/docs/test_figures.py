"""The README's figures of speed are those of docs/performance.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README_ROWS = {
    "**fillmask int8**": "fillmask int8",
    "fillmask fp32": "fillmask fp32",
    "transformers pipeline behind FastAPI": "transformers pipeline",
    "onnxruntime, logits at every position": "onnxruntime, all logits",
    "OpenVINO, the best of fp32, bf16 and int8": "OpenVINO",
}


def rows(text: str, first_heading: str) -> dict[str, list[str]]:
    """The first table that has this heading: cells by their row's name."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first_heading} |"))
    table = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        table[name] = cells
    return table


@pytest.mark.parametrize(("column", "size"), [(0, "minilm"), (2, "bert-base")])
def test_readme_has_the_pages_figures(column: int, size: str) -> None:
    """Requests/s with 8 clients, and ours against each, rounded."""
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    section = re.split(rf"^## {size}:.*$", page, flags=re.MULTILINE)[1]
    measured = {
        name: (float(cells[1]), float(cells[-2].rstrip("x")))
        for name, cells in rows(section, "contender").items()
    }
    readme = (ROOT / "README.md").read_text(encoding="utf-8").split("Speed, side by side")[1]
    printed = rows(readme, "server")
    for name, contender in README_ROWS.items():
        candidates = [v for key, v in measured.items() if key.startswith(contender)]
        requests_per_s, ratio = max(candidates)
        cells = printed[name]
        assert cells[column] == f"{requests_per_s:.0f}"
        assert cells[column + 1] == ("" if name.startswith("**") else f"{ratio:.1f}x")
