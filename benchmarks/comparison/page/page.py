"""Writer of the blocks of docs/performance.md and of its pictures from the latest results."""

from __future__ import annotations

from pathlib import Path

from benchmarks import generated_block
from benchmarks.comparison.in_process.scaling import Scaling
from benchmarks.comparison.page import comparison_section, scaling_section
from benchmarks.comparison.page.charts import draw_comparison, draw_scaling
from benchmarks.comparison.results import Comparison
from benchmarks.comparison.workspace import ROOT

PAGE = ROOT / "docs" / "performance.md"


def write_page(page: Path = PAGE) -> None:
    """Replace the measured blocks of the page, and the pictures beside it.

    A block without results stays as it is.
    """
    if comparison := Comparison.read():
        text = comparison_section.comparison_section(comparison)
        generated_block.write(page, comparison_section.NAME, text)
        draw_comparison(comparison, page.parent / "performance.png")
    if scaling := Scaling.read():
        generated_block.write(page, scaling_section.NAME, scaling_section.scaling_section(scaling))
        draw_scaling(scaling, page.parent / "performance-scaling.png")
