"""Figures of README.md and docs/performance.md, compared with their sources."""

from __future__ import annotations

import re

import pytest

from benchmarks import generated_block
from benchmarks.load import capacity, overload, pod_size
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from tests.docs import pages

README = pages.read(pages.ROOT / "README.md")
WHY = pages.read(pages.DOCS / "why.md")
PERFORMANCE = pages.read(pages.DOCS / "performance.md")
# contenders by their rows in README.md
CONTENDERS = {
    "**fillmask int8**": "fillmask int8",
    "fillmask fp32": "fillmask fp32",
    "CTranslate2 int8": "CTranslate2 int8",
    "OpenVINO int8": "OpenVINO int8, all logits",
    "transformers pipeline behind FastAPI": "transformers pipeline",
}
SIZES = ("minilm", "bert-base")


def table(text: str, column: str) -> dict[str, dict[str, str]]:
    """Return the first table with this column, as cells by row and column."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if f"| {column} |" in line)
    _, *columns = cells(lines[start])
    rows = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *values = cells(line)
        rows[name] = dict(zip(columns, values, strict=True))
    return rows


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def measured(size: str) -> dict[str, dict[str, str]]:
    """Return the table of docs/performance.md for servers of one model size, by contender."""
    [section] = re.findall(
        rf"^## {size} over HTTP:.*?(?=^## )", PERFORMANCE, re.DOTALL | re.MULTILINE
    )
    return table(section, "requests/s at 8")


@pytest.mark.parametrize(("column", "size"), list(enumerate(SIZES)))
def test_figures_of_the_readme(column: int, size: str) -> None:
    section = pages.section(README, "Fast int8 that changes less")
    rows = [cells(line) for line in section.splitlines()]
    shown = {row[0]: row[1 + 3 * column : 4 + 3 * column] for row in rows}
    for name, contender in CONTENDERS.items():
        row = measured(size)[contender]
        rate = f"{float(row['requests/s at 8']):.0f}"
        assert shown[name] == [rate, row["same best token"], f"{row['peak RSS MB']} MB"]


@pytest.mark.parametrize("name", ["OpenVINO", "CTranslate2"])
def test_figures_of_the_page_about_why(name: str) -> None:
    shown = table(WHY, "Its strengths")[name]["What you get here"]
    for size in SIZES:
        [row] = [row for key, row in measured(size).items() if key.startswith(f"{name} int8")]
        ratio = float(row["fillmask int8 / this, at 8"].rstrip("x"))
        share = float(row["same best token"].rstrip(" %"))
        assert f"{ratio:.1f}" in shown
        assert f"{share:.0f} %" in shown


def test_accuracy_of_the_built_in_model() -> None:
    accuracy = generated_block.read(generated_block.MODEL_CARD, "quality/bundle_accuracy")
    precision = read_bundle(default_bundle_path()).precision
    [line] = re.findall(rf"\| heldout\.txt \| 256.*bundle {precision} \|(.*)", accuracy)
    first, among_five = re.findall(r"([\d.]+ %) \(", line)
    shown = f"| {first} and {among_five} | `python -m benchmarks.quality.bundle_accuracy` |"
    assert shown in PERFORMANCE
    cloze = generated_block.read(generated_block.MODEL_CARD, "quality/cloze")
    [(first, among_five)] = re.findall(r"\| all \| \d+ \| (\d+ %) \| (\d+ %) \|", cloze)
    assert f"| {first} and {among_five} | `python -m benchmarks.quality.cloze` |" in PERFORMANCE


def test_goodput_and_latency_of_an_overload() -> None:
    block = generated_block.read(pod_size.PAGE, overload.NAME)
    goodput = re.search(r"goodput (\d+) % of capacity", block)
    p99_ms = re.search(r"\| 5 times the rate .*, 60 s \|.* (\d+) \|$", block, re.MULTILINE)
    assert goodput
    assert p99_ms
    shown = f"| {goodput[1]} % of capacity and {p99_ms[1]} ms | `benchmarks/load/overload.py` |"
    assert shown in PERFORMANCE


def test_simulation_of_the_first_rate_is_current() -> None:
    # The simulation has a fixed seed. Simulations of the other rates take too long for a test.
    shown = generated_block.read(pod_size.PAGE, capacity.NAME).splitlines()
    rate, *others = capacity.RATES
    assert [line for line in shown if line.startswith(f"| {rate:,} |")] == list(capacity.rows(rate))
    for other in others:
        assert any(line.startswith(f"| {other:,} |") for line in shown)
