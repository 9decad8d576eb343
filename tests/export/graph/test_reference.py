"""Agreement of the reference graph with PyTorch in two runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from fillmask_export.graph.reference import reference_graph
from fillmask_export.graph.weights import encoder_weights
from tests.export.samples import CONFIGS, PaddedBatch, padded_batch
from tests.model.samples import random_encoder

TOLERANCE = 1e-4  # logits, against PyTorch in float32


def _evaluated(graph: onnx.ModelProto, batch: PaddedBatch) -> NDArray[np.float32]:
    results = cast(
        "Sequence[NDArray[np.float32]]", ReferenceEvaluator(graph).run(None, batch.feed())
    )
    return results[0]


@pytest.mark.parametrize("name", CONFIGS)
def test_agrees_with_pytorch_in_both_runtimes(name: str) -> None:
    # onnxruntime and onnx's own evaluator compute PyTorch's logits, including padding.
    config = CONFIGS[name]
    model = random_encoder(config)
    graph = reference_graph(config, encoder_weights(model))
    onnx.checker.check_model(graph, full_check=True)
    batch = padded_batch(config.vocab_size)
    expected = batch.logits(model)
    assert expected.shape == (5, config.vocab_size)
    session = ort.InferenceSession(graph.SerializeToString())
    np.testing.assert_allclose(session.run(None, batch.feed())[0], expected, atol=TOLERANCE)
    np.testing.assert_allclose(_evaluated(graph, batch), expected, atol=TOLERANCE)


def test_no_mask_gives_no_row() -> None:
    # A batch without masks (M = 0) gives logits of shape (0, V).
    config = CONFIGS["bert"]
    graph = reference_graph(config, encoder_weights(random_encoder(config)))
    batch = padded_batch(config.vocab_size)
    maskless = replace(batch, mask_indicator=np.zeros_like(batch.mask_indicator))
    session = ort.InferenceSession(graph.SerializeToString())
    assert session.run(None, maskless.feed())[0].shape == (0, config.vocab_size)
    assert _evaluated(graph, maskless).shape == (0, config.vocab_size)


def test_inputs_outputs_and_operators_are_the_contract() -> None:
    config = CONFIGS["bert"]
    graph = reference_graph(config, encoder_weights(random_encoder(config)))
    described = {
        value.name: (
            onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type),
            [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim],
        )
        for value in (*graph.graph.input, *graph.graph.output)
    }
    assert described == {
        "input_ids": ("INT64", ["N", "T"]),
        "attention_mask": ("INT64", ["N", "T"]),
        "mask_indicator": ("FLOAT", ["N", "T"]),
        "logits": ("FLOAT", ["M", config.vocab_size]),
    }
    assert {node.domain for node in graph.graph.node} == {""}
    assert [(opset.domain, opset.version) for opset in graph.opset_import] == [("", 17)]


def test_gathers_the_masks_before_the_projection() -> None:
    config = CONFIGS["packed"]
    graph = reference_graph(config, encoder_weights(random_encoder(config))).graph
    (projection,) = (node for node in graph.node if "logits" in node.output)
    makers = {output: node for node in graph.node for output in node.output}
    assert makers[projection.input[0]].op_type == "GatherND"
    assert projection.input[1] == "embeddings.word.weight"


def test_holds_one_table_and_hardly_more_than_the_parameters(tmp_path: Path) -> None:
    # The file has one initializer for the table, and at most 1.05 bytes per byte of parameters.
    config = replace(CONFIGS["bert"], vocab_size=3001, d_model=96, d_ff=200)
    model = random_encoder(config)
    graph = reference_graph(config, encoder_weights(model))
    shapes = [tuple(tensor.dims) for tensor in graph.graph.initializer]
    assert shapes.count((3001, 96)) == 1
    assert shapes.count((96, 3001)) == 0
    onnx.save(graph, tmp_path / "reference.onnx")
    parameter_bytes = 4 * sum(parameter.numel() for parameter in model.parameters())
    assert (tmp_path / "reference.onnx").stat().st_size <= 1.05 * parameter_bytes
