"""Page and pictures of the comparison, from invented results."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import generated_block
from benchmarks.comparison import results as results_module
from benchmarks.comparison.http.contenders import contenders
from benchmarks.comparison.http.latency import LENGTHS_TOKENS
from benchmarks.comparison.http.memory import Memory
from benchmarks.comparison.in_process.scaling import Curves, Point, Scaling, Vocabulary
from benchmarks.comparison.in_process.throughput import variants
from benchmarks.comparison.page import comparison_section as comparison_module
from benchmarks.comparison.page import scaling_section as scaling_module
from benchmarks.comparison.page.comparison_section import comparison_section
from benchmarks.comparison.page.page import PAGE, write_page
from benchmarks.comparison.page.scaling_section import scaling_section
from benchmarks.comparison.page.table import table
from benchmarks.comparison.results import Cell, Comparison, SizeResults, Visit
from benchmarks.comparison.workspace import Workspace


def _visit(requests_per_s: float) -> Visit:
    cell = Cell(
        requests=10, requests_per_s=requests_per_s, p50_ms=2.5, p99_ms=7.5, client_cpu_us=20
    )
    return Visit(ready_s=0.5, peak_rss_bytes=100_000_000, agreement=1, cells={1: cell, 8: cell})


def _comparison() -> Comparison:
    names = [contender.name for contender in contenders(Workspace("minilm"), 2)]
    size = SizeResults(
        parameters="6 layers",
        texts=200,
        mean_tokens=26,
        mean_masks=1.5,
        chosen=dict.fromkeys(names, "some setting"),
        # contender number i is 1 + i times as slow as fillmask, the first contender
        visits={
            name: [_visit(speed / (1 + i)) for speed in (600, 300, 500)]
            for i, name in enumerate(names)
        },
        in_process={name: [800, 400, 700] for name in variants()},
        latency_ms={
            "fillmask int8": {"default": {tokens: [1, 5, 2] for tokens in LENGTHS_TOKENS}},
            "CTranslate2 int8": {
                "head in NumPy": {tokens: [9 if tokens == 512 else 3] for tokens in LENGTHS_TOKENS},
                "head in PyTorch": {tokens: [8, 7, 6.5] for tokens in LENGTHS_TOKENS},
            },
        },
    )
    return Comparison(
        date="2026-01-02",
        machine=["CPU: one", "servers on 2 CPUs"],
        cpus=2,
        seconds=8,
        rounds=3,
        null_server={1: size.visits[names[0]][0].cells[1], 8: size.visits[names[0]][0].cells[8]},
        sizes={"minilm": size},
        installed_bytes={"fillmask": 300_000_000},
    )


def _scaling() -> Scaling:
    points = [Point(at=at, ms={"fp32": at / 2, "int8": at / 4}) for at in (1, 2, 4)]
    vocabulary = Vocabulary(bundle_bytes={"fp32": 9_000_000, "int8": 3_000_000}, by_masks=points)
    return Scaling(
        machine=["CPU: one", "servers on 2 CPUs"],
        curves=Curves(
            by_tokens=points, by_masks=points, by_texts=points, by_vocabulary={"minilm": vocabulary}
        ),
        texts_per_s_by_threads={1: 400, 2: 790},
        memory=Memory(
            name="builtin",
            ready_s=0.8,
            peak_rss_bytes=170_000_000,
            samples=[(2000, 150_000_000), (50_000, 152_500_000)],
        ),
    )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results_module, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def test_results_are_read_back_as_they_were_written(cache: Path) -> None:
    assert Comparison.read() is None
    _comparison().write()
    _scaling().write()
    assert Comparison.read() == _comparison()
    assert Scaling.read() == _scaling()


def test_the_comparison_shows_medians_ratios_and_every_contender() -> None:
    page = comparison_section(_comparison())
    # The fourth contender's median is 500 / 4, its ratio 4, and its spread (600 - 300) / 500.
    speeds = next(line for line in page.splitlines() if "| 125.0" in line)
    assert speeds.split(" | ")[0] == "| transformers pipeline"
    assert speeds.endswith("| 4.00x | 60 % | 2.5 / 7.5 | 100 | 0.50 | not measured | 100.0 % |")
    assert "| 100 | 0.50 | 300 | 100.0 % |" in page
    assert "| onnxruntime, gather graph | 700.0 | 1.00x |" in page
    assert "**LitServe + transformers**" in page
    # 600 of 800, 300 of 400 and 500 of 700 texts/s: the median share is 75 %.
    assert "75 % (minilm)" in page
    assert "CPU: one; servers on 2 CPUs." in page


def test_sizes_share_the_rows_of_latency_and_throughput() -> None:
    comparison = _comparison()
    comparison.sizes["bert-base"] = comparison.sizes["minilm"]
    page = comparison_section(comparison)
    assert "| fillmask int8 | 2.0 | 2.0 | 2.0 | 2.0 | 2.0 | 2.0 | 2.0 | 2.0 | 2.0 | 2.0 |" in page
    assert "| fillmask fp32 | 700.0 | 1.00x | 700.0 | 1.00x |" in page


def test_each_cell_of_the_latency_table_has_the_fastest_setting() -> None:
    page = comparison_section(_comparison())
    assert "| fillmask int8 | 2.0 | 2.0 | 2.0 | 2.0 | 2.0 |" in page
    assert "| CTranslate2 int8 | 3.0 | 3.0 | 3.0 | 3.0 | 7.0 |" in page


def test_scaling_shows_every_curve_and_the_growth_of_memory() -> None:
    page = scaling_section(_scaling())
    assert page.count("| fp32 | 0.50 | 1.00 | 2.00 |") == 3
    assert "| minilm | 0.50 | 0.25 | 1.00 | 0.50 | 2.00 | 1.00 | 9 | 3 |" in page
    assert "400.0 with 1, 790.0 with 2." in page
    assert "+2.5 MB" in page


def test_page_has_both_blocks_and_the_pictures_it_names(cache: Path, tmp_path: Path) -> None:
    _comparison().write()
    _scaling().write()
    page = tmp_path / "performance.md"
    shutil.copy(PAGE, page)
    write_page(page)
    comparison = generated_block.read(page, comparison_module.NAME)
    assert comparison == f"{comparison_section(_comparison())}\n"
    scaling = generated_block.read(page, scaling_module.NAME)
    assert scaling == f"{scaling_section(_scaling())}\n"
    for name in ("performance.png", "performance-scaling.png"):
        assert f"({name})" in page.read_text()
        content = (page.parent / name).read_bytes()
        assert content.startswith(b"\x89PNG")
        assert len(content) > 10_000


def test_a_block_that_was_not_measured_stays(cache: Path, tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    shutil.copy(PAGE, page)
    write_page(page)
    assert page.read_text() == PAGE.read_text()


def test_a_table_with_a_cell_missing_is_an_error() -> None:
    # Without the error, Markdown shows the figures under wrong headings.
    with pytest.raises(ValueError, match="must have 2 cells"):
        table(["a", "b"], [["1"]])
    assert table(["a", "b"], [["x|y", "1"]]) == "| a | b |\n| --- | --: |\n| x\\|y | 1 |"
