"""The served graph agrees with PyTorch, whatever else is in the batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from numpy.typing import NDArray

from export.graph import served_graph
from export.operators import float_tensor
from export.weights import encoder_weights, round_to_int8
from model.config import EncoderConfig
from model.encoder import TiedEncoder
from service.batch import Batch, Outputs, Request
from service.runtime import Runtime
from tests.export.samples import CONFIGS, padded_batch
from tests.model.samples import random_encoder

TOLERANCE = 1e-4  # log-probabilities in nats, against PyTorch in float32
NEIGHBOUR_TOLERANCE = 1e-5
TOP_K = 4


def _runtime(directory: Path, model: TiedEncoder, *, int8: bool, threads: int = 1) -> Runtime:
    graph = served_graph(model.config, encoder_weights(model), int8=int8)
    onnx.checker.check_model(graph, full_check=True)
    onnx.save(graph, directory / "model.onnx")
    return Runtime(directory / "model.onnx", threads)


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    log_probs: NDArray[np.float32] = torch.log_softmax(torch.from_numpy(logits), dim=-1).numpy()
    return log_probs


@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
@pytest.mark.parametrize("name", CONFIGS)
def test_agrees_with_pytorch(name: str, int8: bool, tmp_path: Path) -> None:  # noqa: FBT001 - pytest passes it
    """Top ids, their log-probabilities and those of targets are PyTorch's on the same weights."""
    config = CONFIGS[name]
    model = random_encoder(config)
    runtime = _runtime(tmp_path, model, int8=int8)
    if int8:
        round_to_int8(model)
    batch = padded_batch(config.vocab_size)
    targets = np.random.default_rng(1).integers(0, config.vocab_size, (5, 3))
    outputs = runtime.run(Batch.pack(batch.requests(targets, TOP_K)))
    expected = _log_softmax(batch.logits(model))
    np.testing.assert_array_equal(outputs.top_ids, np.argsort(-expected, axis=1)[:, :TOP_K])
    best = np.take_along_axis(expected, outputs.top_ids, axis=1)
    np.testing.assert_allclose(outputs.top_log_probs, best, atol=TOLERANCE)
    asked = np.take_along_axis(expected, targets, axis=1)
    np.testing.assert_allclose(outputs.target_log_probs, asked, atol=TOLERANCE)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
def test_neighbours_change_nothing(int8: bool, threads: int, tmp_path: Path) -> None:  # noqa: FBT001 - pytest passes it
    """A text answers alike alone and at every place among 32 strangers of other lengths."""
    config = CONFIGS["bert"]
    runtime = _runtime(tmp_path, random_encoder(config), int8=int8, threads=threads)
    generator = np.random.default_rng(2)

    def text(length: int, masks: int) -> Request:
        positions = np.sort(generator.choice(length, masks, replace=False))
        ids = generator.integers(0, config.vocab_size, length)
        return Request(ids, positions, TOP_K, np.array([[1, 2]] * masks))

    ours = text(9, 2)
    alone = runtime.run(Batch.pack([ours]))
    strangers = [text(int(generator.integers(1, 18)), 1) for _ in range(32)]
    for place in (0, 1, 16, 31, 32):
        among = Batch.pack([*strangers[:place], ours, *strangers[place:]])
        fills = among.split(runtime.run(among))[place]
        _assert_alike(fills, alone)


def _assert_alike(first: Outputs, second: Outputs) -> None:
    np.testing.assert_array_equal(first.top_ids, second.top_ids)
    for name in ("top_log_probs", "target_log_probs"):
        np.testing.assert_allclose(
            getattr(first, name), getattr(second, name), atol=NEIGHBOUR_TOLERANCE
        )


def test_no_targets_is_allowed(tmp_path: Path) -> None:
    """K = 0 gives (M, 0)."""
    runtime = _runtime(tmp_path, random_encoder(CONFIGS["bert"]), int8=False)
    request = Request(np.array([3, 4, 5]), np.array([1]), 2, np.zeros((1, 0), np.int64))
    outputs = runtime.run(Batch.pack([request]))
    assert outputs.top_ids.shape == (1, 2)
    assert outputs.target_log_probs.shape == (1, 0)


def _table_tensors(graph: onnx.ModelProto, config: EncoderConfig) -> list[onnx.TensorProto]:
    shapes = {(config.vocab_size, config.d_model), (config.d_model, config.vocab_size)}
    return [tensor for tensor in graph.graph.initializer if tuple(tensor.dims) in shapes]


@pytest.mark.parametrize(
    ("int8", "bytes_per_weight"), [(False, 4), (True, 1)], ids=["fp32", "int8"]
)
def test_one_table_serves_lookup_and_projection(int8: bool, bytes_per_weight: int) -> None:  # noqa: FBT001 - pytest passes it
    """One initializer of the table's shape, read by the lookup and by the last product."""
    config = replace(CONFIGS["bert"], vocab_size=3001, d_model=96, d_ff=400, max_positions=8)
    model = random_encoder(config)
    graph = served_graph(config, encoder_weights(model), int8=int8)
    (table,) = _table_tensors(graph, config)
    assert len(table.raw_data) == 3001 * 96 * bytes_per_weight
    name = f"{table.name}.dequantized" if int8 else table.name
    readers = [node.op_type for node in graph.graph.node if name in node.input]
    assert sorted(readers) == ["Gather", "Gemm"]
    parameter_bytes = sum(parameter.numel() for parameter in model.parameters())
    # int8: biases, norms and positions stay float32, and each row has a scale
    slack = 1.2 if int8 else 1.05
    assert graph.ByteSize() <= slack * bytes_per_weight * parameter_bytes


def test_the_last_block_works_on_masks_only(tmp_path: Path) -> None:
    """The feed-forward part sees every token in the first block, only the masks in the last."""
    config = CONFIGS["bert"]
    graph = served_graph(config, encoder_weights(random_encoder(config)), int8=False)
    makers = {node.input[1]: node.output[0] for node in graph.graph.node if node.op_type == "Gemm"}
    probes = [makers[f"blocks.{number}.ffn_in.weight"] for number in (0, config.num_layers - 1)]
    graph.graph.output.extend(float_tensor(name, None, config.d_ff) for name in probes)
    batch = Batch.pack(padded_batch(config.vocab_size).requests(np.zeros((5, 0), np.int64), TOP_K))
    feed = {value.name: getattr(batch, value.name) for value in graph.graph.input}
    rows = [len(x) for x in ort.InferenceSession(graph.SerializeToString()).run(probes, feed)]
    assert rows == [11 + 5 + 7 + 3, 5]
