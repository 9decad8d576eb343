"""Sparse vectors of one text and of files in every format, equal to those of Python."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fillmask import FillMask
from tests.model.samples import VERSES
from tests.service.cli.command_line import fillmask, read_rows, write_rows
from tests.service.sparse_bundles import write_sparse_bundle

ROWS: list[dict[str, Any]] = [
    {"inputs": VERSES[0]},
    {"inputs": VERSES[1], "parameters": {"top_n": 2}, "id": 7},
]


@pytest.fixture(scope="module")
def splade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sparse_bundle(tmp_path_factory.mktemp("cli") / "splade")


@pytest.fixture(scope="module")
def expected(splade: Path) -> list[dict[str, object]]:
    with FillMask(splade, threads=1) as model:
        vectors = model.embed_sparse(VERSES[:2], top_n=5, parameters=[None, {"top_n": 2}])
        return [vector.to_dict() for vector in vectors]


def test_a_table_shows_the_largest_weights_first(splade: Path) -> None:
    done = fillmask("--task=sparse", VERSES[0], "--bundle", splade, "--top-n=6")
    weights = [float(line.split()[0]) for line in done.out.splitlines()]
    assert weights == sorted(weights, reverse=True)
    assert len(weights) == 6
    body = json.loads(
        fillmask("--task=sparse", VERSES[0], "--json", "--bundle", splade, "--min-weight=0.5").out
    )
    assert min(one["value"] for one in body[0]) >= 0.5


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_files_have_the_same_vectors(
    splade: Path, tmp_path: Path, expected: list[dict[str, object]], suffix: str
) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", ROWS), tmp_path / f"out.{suffix}"
    done = fillmask(
        *("--task=sparse", "--input", source, "--output", output),
        *("--bundle", splade, "--top-n", 5),
    )
    assert (done.code, done.out) == (0, ""), done.err
    if suffix == "jsonl":
        rows = read_rows(output)
        assert [row["vector"] for row in rows] == expected
        assert rows[1]["id"] == 7
        return
    if suffix == "csv":
        lines = list(csv.DictReader(io.StringIO(output.read_text())))
        found = [{name: json.loads(line[name]) for name in expected[0]} for line in lines]
        assert found == expected
        return
    for row, vector in zip(pq.read_table(output).to_pylist(), expected, strict=True):
        assert row["indices"] == vector["indices"]
        assert row["tokens"] == vector["tokens"]
        assert row["values"] == pytest.approx(vector["values"])


def test_a_bad_parameter_is_refused(splade: Path) -> None:
    done = fillmask("--task=sparse", "a", "--bundle", splade, "--min-weight=x")
    assert done.code == 2
    assert 'min_weight must be a number of at least 0 (got "x")' in done.err
    done = fillmask("--task=sparse", "a")
    assert done.code == 2
    assert "--task must be fill-mask or score" in done.err
