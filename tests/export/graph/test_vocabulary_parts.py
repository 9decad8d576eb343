"""Ranking of a vocabulary in parts, compared with ranking the entire vocabulary at once."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs, ModelPass
from fillmask.engine.runtime import Runtime
from fillmask_export.graph import operators
from fillmask_export.graph.int8_operators import Int8GraphBuilder
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.served import served_graph
from fillmask_export.graph.weight_file import WeightFile
from fillmask_export.graph.weights import encoder_weights
from fillmask_export.heads.fill_mask import FillMask
from fillmask_export.quantization.weights import int8_weights
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.encoder import TABLE, TiedEncoder
from tests.export.samples import CONFIGS
from tests.model.samples import random_encoder

TOLERANCE = 1e-5  # nats, with sums of exponentials in parts
BERT = replace(CONFIGS["bert"], max_positions=32)  # 97 tokens
PARTS = (40, 48)  # 40 + 40 + 17 and 48 + 48 + 1


def run(directory: Path, model: TiedEncoder, request: ModelPass, *, int8: bool) -> BatchOutputs:
    """Return the result of a graph with its weights in a file."""
    directory.mkdir()
    weights = encoder_weights(model)
    with closing(WeightFile(directory / "weights.bin")) as file:
        builder = GraphBuilder(model.config, weights, file)
        if int8:
            texts = [np.arange(start, start + 10) for start in range(20)]
            rounding = int8_weights(Checkpoint(model, None, head_is_new=False), texts, 0, directory)
            builder = Int8GraphBuilder(model.config, weights, rounding, file)
        graph = served_graph(builder, [FillMask()])
    onnx.save(graph, directory / "model.onnx")
    return Runtime(directory / "model.onnx").run(Batch.pack([request]))


@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
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
    np.testing.assert_array_equal(parts.top_ids, whole.top_ids)
    np.testing.assert_allclose(parts.top_log_probs, whole.top_log_probs, atol=TOLERANCE)
    np.testing.assert_allclose(parts.target_log_probs, whole.target_log_probs, atol=TOLERANCE)
    np.testing.assert_allclose(np.exp(parts.target_log_probs).sum(-1), 1, atol=TOLERANCE)


@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
def test_parts_lie_in_the_table(
    int8: bool,  # noqa: FBT001 - pytest passes it
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The weights file contains the table once.
    monkeypatch.setattr(operators, "PART_ROWS", 40)
    request = ModelPass(np.array([3, 4, 5]), np.array([1]), 2, np.zeros((1, 0), np.int64))
    run(tmp_path / "bundle", random_encoder(BERT), request, int8=int8)
    graph = onnx.load(tmp_path / "bundle" / "model.onnx", load_external_data=False).graph
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
