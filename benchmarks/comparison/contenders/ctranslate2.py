"""CTranslate2's encoder in int8, with a masked-language-model head in onnxruntime.

CTranslate2 has no such head, and its own converter does not work with the transformers version of
the comparison, so that this module fills CTranslate2's public model specification.

Shapes: M masks of all texts, D width of the encoder, V tokens of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparison.contenders.app import APP
from benchmarks.comparison.contenders.contender import (
    Contender,
    Job,
    Setting,
    Variant,
    session,
    split,
)
from benchmarks.comparison.contenders.engine import at_masks, grouped
from benchmarks.comparison.contenders.onnxruntime import open_session
from benchmarks.comparison.workspace import Workspace
from fillmask.arrays import FloatArray
from fillmask.tokenization.encoded_text import EncodedText

NAME = "CTranslate2 int8"
# file of the head by its precision
HEADS = {"fp32": "head.onnx", "int8": "head-int8.onnx"}
OPSET = 20  # first version with Gelu

Weights = Mapping[str, FloatArray]


def busy(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return its row."""
    command = (*session(workspace, "ctranslate2", workspace.ctranslate2), "--runs", str(cpus))
    return [
        Contender(
            name=NAME,
            settings=_heads(command, split(cpus, cpus)),
            requirements=(*APP, "ctranslate2", "onnxruntime", "tokenizers", "numpy"),
            note="The encoder. CTranslate2 has no masked-language-model head, so onnxruntime "
            "computes the head at the masks.",
        )
    ]


def alone(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return its row with all threads for each text."""
    command = (
        *session(workspace, "ctranslate2", workspace.ctranslate2),
        "--runs",
        "1",
        "--threads",
        str(cpus),
    )
    return [Contender(NAME, _heads(command, "all threads"))]


def variants(workspace: Workspace) -> list[Variant]:
    """Return its row without HTTP, with one thread per run."""

    def jobs(head: str, number: int, texts: Sequence[EncodedText], threads: int) -> list[Job]:
        engine = CTranslate2Engine(workspace.ctranslate2, "int8", head, threads, 1)
        return grouped(engine, texts, number, by_length=number > 1)

    settings = {
        f"{number} texts of similar length per run, head in {head}": partial(jobs, head, number)
        for number in (1, 8, 16)
        for head in HEADS
    }
    return [Variant(f"{NAME}, gather head", settings)]


def _heads(command: tuple[str, ...], label: str) -> tuple[Setting, ...]:
    return tuple(Setting(f"{label}, head in {head}", (*command, "--head", head)) for head in HEADS)


class CTranslate2Engine:
    """CTranslate2 with a head in onnxruntime.

    Args:
        directory: directory of `convert`.
        precision: precision of the encoder, "int8" or "float32".
        head: precision of the head, one of HEADS.
        workers: number of concurrent runs (`inter_threads`).
        threads: number of threads per run (`intra_threads`).
    """

    def __init__(
        self, directory: Path, precision: str, head: str, workers: int, threads: int
    ) -> None:
        # imported here, because only the environment of `make comparison` has CTranslate2
        import ctranslate2  # type: ignore[import-not-found]  # noqa: PLC0415

        self._encoder = ctranslate2.Encoder(
            str(directory),
            compute_type=precision,
            inter_threads=workers,
            intra_threads=threads,
        )
        self._head = open_session(directory / HEADS[head], threads)

    def logits(self, texts: Sequence[EncodedText]) -> FloatArray:
        """Compute the logits (M, V) at the masks of texts. Several threads may call the method."""
        output = self._encoder.forward_batch([text.input_ids.tolist() for text in texts])
        hidden_MD = at_masks(np.asarray(output.last_hidden_state), texts)
        logits_MV: FloatArray = self._head.run(["logits"], {"hidden": hidden_MD})[0]
        return logits_MV


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
    """Write the head as an ONNX graph, and the same graph in int8."""
    # imported here, because these packages would add to the memory of the server
    import onnx  # noqa: PLC0415
    import onnxruntime.quantization as ort_quantization  # noqa: PLC0415
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415

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
    onnx.save(model, directory / HEADS["fp32"])
    ort_quantization.quantize_dynamic(
        directory / HEADS["fp32"],
        directory / HEADS["int8"],
        per_channel=True,
        op_types_to_quantize=["MatMul"],
    )
