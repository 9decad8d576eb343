"""Conversion of BERT checkpoints to CTranslate2's encoder, which has no masked-language-model head.

CTranslate2's own converter does not work with the transformers version of the comparison. This
module fills CTranslate2's public model specification instead. The head becomes an ONNX graph and
NumPy arrays.

Shapes: M masks, D width of the encoder, V tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime.quantization as ort_quantization
from onnx import TensorProto, helper, numpy_helper

from benchmarks.comparison.engines.ctranslate2_engine import HEAD, HEAD_ARRAYS, HEAD_INT8
from fillmask.arrays import FloatArray

OPSET = 20  # first version with Gelu

Weights = Mapping[str, FloatArray]


def convert(weights: Weights, config: Any, vocabulary: list[str], directory: Path) -> None:
    """Write the encoder in float32, which CTranslate2 rounds to int8 at its start, and the head.

    Args:
        weights: tensors of transformers' BertForMaskedLM by name.
        config: BertConfig of the checkpoint.
        vocabulary: tokens by id.
        directory: new directory.
    """
    # imported here, because only the environment of `make comparison` has CTranslate2
    from ctranslate2.specs import (  # type: ignore[import-not-found]  # noqa: PLC0415
        common_spec,
        transformer_spec,
    )

    directory.mkdir()
    spec = transformer_spec.TransformerEncoderSpec(
        config.num_hidden_layers,
        config.num_attention_heads,
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
        num_source_embeddings=2,
        embeddings_merge=common_spec.EmbeddingsMerge.ADD,
    )
    _fill_encoder(spec, weights)
    model = transformer_spec.TransformerEncoderModelSpec(spec)
    model.register_vocabulary(vocabulary)
    model.config.layer_norm_epsilon = config.layer_norm_eps
    model.validate()
    model.optimize()
    model.save(str(directory))
    write_head(weights, config.layer_norm_eps, directory)


def _fill_encoder(spec: Any, weights: Weights) -> None:
    spec.scale_embeddings = False
    embeddings = "bert.embeddings"
    spec.embeddings[0].weight = weights[f"{embeddings}.word_embeddings.weight"]
    spec.embeddings[1].weight = weights[f"{embeddings}.token_type_embeddings.weight"]
    spec.position_encodings.encodings = weights[f"{embeddings}.position_embeddings.weight"]
    _fill_norm(spec.layernorm_embedding, weights, f"{embeddings}.LayerNorm")
    for number, layer in enumerate(spec.layer):
        name = f"bert.encoder.layer.{number}"
        queries, output = layer.self_attention.linear
        parts = [f"{name}.attention.self.{part}" for part in ("query", "key", "value")]
        queries.weight = np.concatenate([weights[f"{part}.weight"] for part in parts])
        queries.bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
        _fill_linear(output, weights, f"{name}.attention.output.dense")
        _fill_norm(layer.self_attention.layer_norm, weights, f"{name}.attention.output.LayerNorm")
        _fill_linear(layer.ffn.linear_0, weights, f"{name}.intermediate.dense")
        _fill_linear(layer.ffn.linear_1, weights, f"{name}.output.dense")
        _fill_norm(layer.ffn.layer_norm, weights, f"{name}.output.LayerNorm")


def _fill_linear(spec: Any, weights: Weights, name: str) -> None:
    spec.weight, spec.bias = weights[f"{name}.weight"], weights[f"{name}.bias"]


def _fill_norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]


def write_head(weights: Weights, epsilon: float, directory: Path) -> None:
    """Write the head as NumPy arrays, as an ONNX graph and as the same graph in int8.

    Args:
        weights: tensors of transformers' BertForMaskedLM by name.
        epsilon: constant of the layer norm.
    """
    transform = "cls.predictions.transform"
    arrays = {
        "dense": weights[f"{transform}.dense.weight"].T,
        "dense_bias": weights[f"{transform}.dense.bias"],
        "gamma": weights[f"{transform}.LayerNorm.weight"],
        "beta": weights[f"{transform}.LayerNorm.bias"],
        "table": weights["bert.embeddings.word_embeddings.weight"].T,
        "bias": weights["cls.predictions.bias"],
    }
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    stored: dict[str, Any] = {**arrays, "epsilon": np.float32(epsilon)}
    np.savez(directory / HEAD_ARRAYS, **stored)
    nodes = [
        helper.make_node("MatMul", ["hidden", "dense"], ["product"]),
        helper.make_node("Add", ["product", "dense_bias"], ["sum"]),
        helper.make_node("Gelu", ["sum"], ["gelu"]),
        helper.make_node("LayerNormalization", ["gelu", "gamma", "beta"], ["n"], epsilon=epsilon),
        helper.make_node("MatMul", ["n", "table"], ["scores"]),
        helper.make_node("Add", ["scores", "bias"], ["logits"]),
    ]
    width, vocabulary = arrays["table"].shape
    graph = helper.make_graph(
        nodes,
        "head",
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["M", width])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["M", vocabulary])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=onnx.IR_VERSION - 1
    )
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, directory / HEAD)
    ort_quantization.quantize_dynamic(
        directory / HEAD, directory / HEAD_INT8, per_channel=True, op_types_to_quantize=["MatMul"]
    )
