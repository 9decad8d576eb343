"""Figures of README.md and docs/figures.md, compared with their sources."""

from __future__ import annotations

import re

import pytest

from benchmarks import generated_block
from benchmarks.load import capacity, overload, pod_size
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from tests.docs import pages

README = pages.read(pages.ROOT / "README.md")
FIGURES = pages.read(pages.DOCS / "figures.md")
PERFORMANCE = pages.read(pages.DOCS / "performance.md")
# Rows of docs/figures.md. Each row shows the fastest contender whose name begins with the value.
CONTENDERS = {
    "**fillmask int8**": "fillmask int8",
    "fillmask fp32": "fillmask fp32",
    "transformers pipeline behind FastAPI": "transformers pipeline",
    "onnxruntime, logits at every position": "onnxruntime, all logits",
    "OpenVINO, the best of fp32, bf16 and int8": "OpenVINO",
    "CTranslate2 int8, with the head in another library": "CTranslate2 int8",
}
SIZES = {"MiniLM-L6": "minilm", "BERT-base": "bert-base"}


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


def measured(size: str, column: str) -> dict[str, dict[str, str]]:
    """Return a table of docs/performance.md for one model size, by contender."""
    [section] = re.findall(rf"^## {size}:.*?(?=^## )", PERFORMANCE, re.DOTALL | re.MULTILINE)
    return table(section, column)


def rate_and_ratio(size: str, contender: str) -> tuple[float, float]:
    """Return the fastest variant's requests/s at 8 clients and fillmask int8's speedup over it."""
    return max(
        (float(row["requests/s at 8"]), float(row["fillmask int8 / this, at 8"].rstrip("x")))
        for name, row in measured(size, "requests/s at 8").items()
        if name.startswith(contender)
    )


@pytest.mark.parametrize(("column", "size"), list(enumerate(SIZES.values())))
def test_speed_on_the_figures_page(column: int, size: str) -> None:
    rows = [cells(line) for line in pages.section(FIGURES, "Speed").splitlines()]
    shown = {row[0]: row[1 + 2 * column : 3 + 2 * column] for row in rows}
    for name, contender in CONTENDERS.items():
        rate, ratio = rate_and_ratio(size, contender)
        assert shown[name] == [f"{rate:.0f}", "" if name.startswith("**") else f"{ratio:.1f}x"]


def test_figures_of_the_readme() -> None:
    rows = {row[0]: row[1:] for row in map(cells, pages.section(README, "Figures").splitlines())}
    for name, size in SIZES.items():
        own, _ = rate_and_ratio(size, "fillmask int8")
        other, ratio = rate_and_ratio(size, "transformers pipeline")
        expected = [f"{own:.0f}", f"{other:.0f}", f"{ratio:.1f}x"]
        assert rows[f"requests/s, 8 clients, {name} size"] == expected
    minilm = measured("minilm", "peak RSS MB")
    own_row, other_row = minilm["fillmask int8"], minilm["transformers pipeline"]
    for name, column in {
        "peak memory, MiniLM-L6 size": "peak RSS MB",
        "installed": "installed MB",
        "start to ready, MiniLM-L6 size": "start to ready s",
    }.items():
        shown = [re.match(r"[\d.,]+", cell) for cell in rows[name][:2]]
        numbers = [float(match[0].replace(",", "").rstrip(".")) for match in shown if match]
        assert numbers == [float(own_row[column]), float(other_row[column])]


def test_accuracy_of_the_built_in_model() -> None:
    accuracy = generated_block.read(generated_block.MODEL_CARD, "quality/bundle_accuracy")
    precision = read_bundle(default_bundle_path()).precision
    [line] = re.findall(rf"\| heldout\.txt \| 256.*bundle {precision} \|(.*)", accuracy)
    first, among_five = re.findall(r"([\d.]+ %) \(", line)
    shown = f"| {first} and {among_five} | `python -m benchmarks.quality.bundle_accuracy` |"
    assert shown in FIGURES
    cloze = generated_block.read(generated_block.MODEL_CARD, "quality/cloze")
    [(first, among_five)] = re.findall(r"\| all \| \d+ \| (\d+ %) \| (\d+ %) \|", cloze)
    assert f"| {first} and {among_five} | `python -m benchmarks.quality.cloze` |" in FIGURES


def test_goodput_and_latency_of_an_overload() -> None:
    block = generated_block.read(pod_size.PAGE, overload.NAME)
    goodput = re.search(r"goodput (\d+) % of capacity", block)
    p99_ms = re.search(r"\| 5 times the rate .*, 60 s \|.* (\d+) \|$", block, re.MULTILINE)
    assert goodput
    assert p99_ms
    shown = f"| {goodput[1]} % of capacity and {p99_ms[1]} ms | `benchmarks/load/overload.py` |"
    assert shown in FIGURES


def test_simulation_of_the_first_rate_is_current() -> None:
    # The simulation has a fixed seed. Simulations of the other rates take too long for a test.
    shown = generated_block.read(pod_size.PAGE, capacity.NAME).splitlines()
    rate, *others = capacity.RATES
    assert [line for line in shown if line.startswith(f"| {rate:,} |")] == list(capacity.rows(rate))
    for other in others:
        assert any(line.startswith(f"| {other:,} |") for line in shown)
