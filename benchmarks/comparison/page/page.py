"""Writer of docs/performance.md and its pictures from the latest results."""

from __future__ import annotations

from pathlib import Path

from benchmarks.comparison.in_process.scaling import Scaling
from benchmarks.comparison.page.charts import draw_comparison, draw_scaling
from benchmarks.comparison.page.comparison_section import comparison_section
from benchmarks.comparison.page.scaling_section import scaling_section
from benchmarks.comparison.results import Comparison


def write_page(directory: Path) -> Path:
    """Write the page and the pictures to a directory.

    The page omits sections without results.

    Returns:
        Path of the page.
    """
    directory.mkdir(parents=True, exist_ok=True)
    sections = []
    if comparison := Comparison.read():
        sections.append(comparison_section(comparison))
        draw_comparison(comparison, directory / "performance.png")
    if scaling := Scaling.read():
        sections.append(scaling_section(scaling))
        draw_scaling(scaling, directory / "performance-scaling.png")
    page = directory / "performance.md"
    page.write_text("\n".join(sections), encoding="utf-8")
    return page
