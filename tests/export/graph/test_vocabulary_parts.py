"""Ranking of a vocabulary in parts, compared with ranking the entire vocabulary at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs, ModelPass
from fillmask.engine.runtime import Runtime
from fillmask_export.graph import operators
from fillmask_model.encoder.encoder import TABLE, TiedEncoder
from tests.export.graphs import assert_same_fills, filling, in_both_precisions, write_graph
from tests.export.samples import CONFIGS
from tests.model.samples import random_encoder

TOLERANCE = 1e-5  # nats, with sums of exponentials in parts
BERT = replace(CONFIGS["bert"], max_positions=32)  # 97 tokens
PARTS = (40, 48)  # 40 + 40 + 17 and 48 + 48 + 1


def run(directory: Path, model: TiedEncoder, request: ModelPass, *, int8: bool) -> BatchOutputs:
    directory.mkdir()
    return Runtime(write_graph(directory, filling(model), int8=int8)).run(Batch.pack([request]))


@in_both_precisions
@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("rows", PARTS)
def test_parts_rank_like_one_table(
    rows: int,
    tied: bool,  # noqa: FBT001 - pytest passes it
    int8: bool,  # noqa: FBT001 - pytest passes it
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The request asks for more ids than a part has.
    model = random_encoder(replace(BERT, tied=tied))
    targets = np.tile(np.arange(BERT.vocab_size), (20, 1))
    request = ModelPass(np.arange(5, 29), np.arange(20), 60, targets)  # 20 masks: two rounds
    whole = run(tmp_path / "whole", model, request, int8=int8)
    monkeypatch.setattr(operators, "PART_ROWS", rows)
    parts = run(tmp_path / "parts", model, request, int8=int8)
    assert_same_fills(parts, whole, TOLERANCE)
    np.testing.assert_allclose(np.exp(parts.target_log_probs).sum(-1), 1, atol=TOLERANCE)


@in_both_precisions
def test_parts_lie_in_the_table(
    int8: bool,  # noqa: FBT001 - pytest passes it
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The weights file contains the table once.
    monkeypatch.setattr(operators, "PART_ROWS", 40)
    path = write_graph(tmp_path, filling(random_encoder(BERT)), int8=int8)
    graph = onnx.load(path, load_external_data=False).graph
    places = {
        tensor.name: {entry.key: entry.value for entry in tensor.external_data}
        for tensor in graph.initializer
    }
    row_bytes = BERT.d_model * (1 if int8 else 4)
    start = int(places[TABLE]["offset"])
    for first, count in ((0, 40), (40, 40), (80, 17)):
        part = places[f"{TABLE}.{first}"]
        assert int(part["offset"]) == start + first * row_bytes
        assert int(part["length"]) == count * row_bytes
