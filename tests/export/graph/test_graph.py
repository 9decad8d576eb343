"""Agreement of the served graph with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask_export.graph.nodes import float_tensor
from fillmask_export.graph.ranking import MASKS_PER_ROUND
from fillmask_model.encoder.encoder import TiedEncoder
from tests.export.graphs import (
    NEIGHBOUR_TOLERANCES,
    assert_same_fills,
    filling,
    in_both_precisions,
    write_graph,
)
from tests.export.samples import CONFIGS, padded_batch, random_text
from tests.model.samples import random_encoder

TOLERANCE = 1e-4  # log-probabilities in nats, against PyTorch in float32
TOP_K = 4


Runtimes = Callable[..., tuple[TiedEncoder, Runtime]]


@pytest.fixture(scope="module")
def graph_of(tmp_path_factory: pytest.TempPathFactory) -> Runtimes:
    """Function that returns an encoder with its graph, which is made once for all tests."""

    @cache
    def make(name: str, threads: int, *, int8: bool) -> tuple[TiedEncoder, Runtime]:
        model = random_encoder(CONFIGS[name])
        path = write_graph(tmp_path_factory.mktemp("graph"), filling(model), int8=int8)
        return model, Runtime(path, threads)

    def graph(name: str, threads: int = 1, *, int8: bool) -> tuple[TiedEncoder, Runtime]:
        return make(name, threads, int8=int8)

    return graph


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    log_probs: NDArray[np.float32] = torch.log_softmax(torch.from_numpy(logits), dim=-1).numpy()
    return log_probs


@pytest.mark.parametrize("name", CONFIGS)
def test_fp32_agrees_with_pytorch(name: str, graph_of: Runtimes) -> None:
    # The comparison covers the top ids and the log-probabilities of top ids and targets.
    config = CONFIGS[name]
    model, runtime = graph_of(name, int8=False)
    batch = padded_batch(config.vocab_size)
    targets = np.random.default_rng(1).integers(0, config.vocab_size, (5, 3))
    outputs = runtime.run(Batch.pack(batch.requests(targets, TOP_K)))
    expected = _log_softmax(batch.logits(model))
    np.testing.assert_array_equal(outputs.top_ids, np.argsort(-expected, axis=1)[:, :TOP_K])
    best = np.take_along_axis(expected, outputs.top_ids, axis=1)
    np.testing.assert_allclose(outputs.top_log_probs, best, atol=TOLERANCE)
    asked = np.take_along_axis(expected, targets, axis=1)
    np.testing.assert_allclose(outputs.target_log_probs, asked, atol=TOLERANCE)


@pytest.mark.parametrize("name", CONFIGS)
def test_long_rows_are_attended_in_rounds(
    name: str, graph_of: Runtimes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CONFIGS[name]
    model, runtime = graph_of(name, int8=False)
    batch = Batch.pack(padded_batch(config.vocab_size).requests(np.zeros((5, 1), np.int64), 50))
    at_once = runtime.run(batch)
    monkeypatch.setattr("fillmask_export.graph.attention.LONG_TOKENS", 1)
    monkeypatch.setattr("fillmask_export.graph.attention.CHUNK_SLOTS", 5)
    path = write_graph(tmp_path, filling(model))
    in_rounds = Runtime(path).run(batch)
    nodes = onnx.load(path).graph.node
    # One loop per layer except the last, which computes only masks, and one loop for the ranking.
    assert [node.op_type for node in nodes].count("Loop") == config.num_layers
    assert_same_fills(in_rounds, at_once, 1e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_int8_comes_close_to_pytorch(name: str, graph_of: Runtimes) -> None:
    # The mean error is below 5 % of the log-probabilities' mean difference between masks.
    config = CONFIGS[name]
    model, runtime = graph_of(name, int8=True)
    batch = padded_batch(config.vocab_size)
    every = np.tile(np.arange(config.vocab_size), (5, 1))
    outputs = runtime.run(Batch.pack(batch.requests(every, TOP_K)))
    expected = _log_softmax(batch.logits(model))
    difference = np.abs(outputs.target_log_probs - expected)
    assert difference.mean() < 0.05 * np.abs(np.diff(expected, axis=0)).mean()
    top = np.take_along_axis(outputs.target_log_probs, outputs.top_ids, axis=1)
    np.testing.assert_allclose(outputs.top_log_probs, top, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "threads"), [("bert", 2), *((name, 1) for name in CONFIGS)], ids=str
)
@in_both_precisions
def test_neighbours_change_nothing(name: str, threads: int, int8: bool, graph_of: Runtimes) -> None:  # noqa: FBT001 - pytest passes it
    # A text gets the same result alone and at every place among 32 texts of other lengths.
    config = CONFIGS[name]
    _, runtime = graph_of(name, threads, int8=int8)
    generator = np.random.default_rng(2)
    text = partial(random_text, generator, config.vocab_size, TOP_K)
    ours = text(9, 2)
    alone = runtime.run(Batch.pack([ours]))
    strangers = [text(int(generator.integers(1, 18)), 1) for _ in range(32)]
    for place in (0, 1, 16, 31, 32):
        among = Batch.pack([*strangers[:place], ours, *strangers[place:]])
        fills = among.unpack(runtime.run(among))[place]
        assert_same_fills(fills, alone, NEIGHBOUR_TOLERANCES[int8])


@in_both_precisions
@pytest.mark.parametrize(
    "masks", [MASKS_PER_ROUND - 1, MASKS_PER_ROUND, MASKS_PER_ROUND + 1, 2 * MASKS_PER_ROUND + 5]
)
def test_many_masks_are_ranked_in_rounds(masks: int, int8: bool, graph_of: Runtimes) -> None:  # noqa: FBT001 - pytest passes it
    # Each mask of a batch gets the same result as in a batch of its own text.
    config = CONFIGS["bert"]
    _, runtime = graph_of("bert", int8=int8)
    generator = np.random.default_rng(6)
    requests = []
    for count in np.diff([0, *range(3, masks, 3), masks]):
        ids = generator.integers(0, config.vocab_size, 7)
        positions = np.arange(count, dtype=np.int64)
        requests.append(ModelPass(ids, positions, TOP_K, generator.integers(0, 97, (count, 2))))
    together = Batch.pack(requests)
    assert len(together.mask_slots) == masks
    for request, fills in zip(requests, together.unpack(runtime.run(together)), strict=True):
        alone = runtime.run(Batch.pack([request]))
        assert_same_fills(fills, alone, NEIGHBOUR_TOLERANCES[int8])


WIDE = replace(CONFIGS["bert"], vocab_size=3001, d_model=96, d_ff=400, max_positions=8)


def _nodes(graph: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Return all nodes of a graph, including the nodes inside the loop."""
    [loop] = [node for node in graph.graph.node if node.op_type == "Loop"]
    return [*graph.graph.node, *loop.attribute[0].g.node]


def test_fp32_stores_one_table_for_lookup_and_projection(tmp_path: Path) -> None:
    # The lookup and the output projection read the same initializer.
    model = random_encoder(WIDE)
    graph = onnx.load(write_graph(tmp_path, filling(model)))
    shapes = [sorted(tensor.dims) for tensor in graph.graph.initializer]
    assert shapes.count([96, 3001]) == 1
    readers = [n.op_type for n in _nodes(graph) if "embeddings.word.weight" in n.input]
    assert sorted(readers) == ["Gather", "Gemm"]
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert graph.ByteSize() <= 1.05 * 4 * parameters


def test_int8_stores_one_table_for_lookup_and_projection(tmp_path: Path) -> None:
    # The lookup and the output projection read the same initializer, with one byte per weight.
    model = random_encoder(WIDE)
    graph = onnx.load(write_graph(tmp_path, filling(model), int8=True))
    tables = [t for t in graph.graph.initializer if np.prod(t.dims) >= 3001 * 96]
    assert [(t.data_type, len(t.raw_data)) for t in tables] == [(TensorProto.INT8, 3001 * 96)]
    readers = [n.op_type for n in _nodes(graph) if tables[0].name in n.input]
    assert sorted(readers) == ["Gather", "Transpose"]
    [columns] = [n.output[0] for n in graph.graph.node if n.op_type == "Transpose"]
    [product] = [n for n in _nodes(graph) if columns in n.input]
    assert product.op_type == "MatMulIntegerToFloat"


def test_a_text_of_zeros_gives_numbers(tmp_path: Path) -> None:
    # Rows of zeros have a scale of zero. Division by the scale must not give NaN.
    model = random_encoder(CONFIGS["bert"])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    runtime = Runtime(write_graph(tmp_path, filling(model), int8=True))
    request = ModelPass(np.array([3, 4, 5]), np.array([1]), 2, np.zeros((1, 0), np.int64))
    outputs = runtime.run(Batch.pack([request]))
    np.testing.assert_allclose(outputs.top_log_probs, -np.log(97), atol=1e-5)


def test_the_last_block_works_on_masks_only(tmp_path: Path) -> None:
    # The first block's feed-forward part computes every token, the last block's only the masks.
    config = CONFIGS["bert"]
    graph = onnx.load(write_graph(tmp_path, filling(random_encoder(config))))
    makers = {node.input[1]: node.output[0] for node in graph.graph.node if node.op_type == "Gemm"}
    probes = [makers[f"blocks.{number}.ffn_in.weight"] for number in (0, config.num_layers - 1)]
    graph.graph.output.extend(float_tensor(name, None, config.d_ff) for name in probes)
    batch = Batch.pack(padded_batch(config.vocab_size).requests(np.zeros((5, 0), np.int64), TOP_K))
    feed = {value.name: getattr(batch, value.name) for value in graph.graph.input}
    rows = [len(x) for x in ort.InferenceSession(graph.SerializeToString()).run(probes, feed)]
    assert rows == [11 + 5 + 7 + 3, 5]
