"""Restoration of a checkpoint from an int8 bundle, for further training.

    python -m export.restore service/bundles/default OUTPUT

The weights of the checkpoint are the rounded weights of the bundle in float32. The bundle must have
BERT's architecture, like the built-in bundle.

The checkpoint differs from the original checkpoint in four points, which do not affect the hidden
states:
- The position embeddings include the embedding of token type 0.
- The feed-forward units have a different order.
- The key and value biases are 0. The bias of attention's output layer contains the value bias.
- Each value channel has another scale, for which the weights of attention's output layer
  compensate.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray

from model.checkpoints.checkpoint import save_checkpoint
from model.encoder.config import EncoderConfig
from model.encoder.encoder import TiedEncoder
from service.bundles.bundle import Bundle, read_bundle

Arrays = Mapping[str, NDArray[np.float32]]
_FACTORS = ".factors"


def restore(bundle: Bundle) -> TiedEncoder:
    """Return the encoder of a bundle in fp32.

    Raises:
        ValueError: the bundle is not an int8 bundle of BERT's architecture.
    """
    graph = onnx.load(bundle.model_path).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    sizes = bundle.architecture
    model = TiedEncoder(
        EncoderConfig(
            vocab_size=sizes.vocab_size,
            d_model=sizes.d_model,
            num_layers=sizes.num_layers,
            num_heads=sizes.num_heads,
            d_ff=sizes.d_ff,
            max_positions=bundle.max_tokens,
            type_vocab_size=0,
            norm_eps=_norm_eps(graph),
        )
    )
    try:
        weights = _weights(stored, sizes.num_layers)
        tensors = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
        model.load_state_dict(tensors)
    except (KeyError, RuntimeError) as error:
        raise ValueError(
            f"{bundle.path} must be an int8 bundle of BERT's architecture ({error})"
        ) from None
    return model.eval()


def _norm_eps(graph: onnx.GraphProto) -> float:
    for node in graph.node:
        if node.op_type == "LayerNormalization":
            return float(next(a.f for a in node.attribute if a.name == "epsilon"))
    raise ValueError(
        "the graph has no LayerNormalization node; use an int8 bundle of BERT's architecture"
    )


def _weights(stored: Arrays, num_layers: int) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of the encoder by their names in PyTorch."""
    table = "embeddings.word.weight"
    weights = {
        table: stored[table] * stored[f"{table}.scales"][:, None] * stored[f"{table}.factors"],
        "embeddings.position.weight": stored["embeddings.position"],
        "head.dense.weight": _linear(stored, "head.dense"),
        "head.dense.bias": stored["head.dense.bias"],
        "head_bias": stored["head_bias"],
    }
    norms = ["embeddings.norm", "head.norm"]
    for layer in range(num_layers):
        block = f"blocks.{layer}"
        weights |= _block(stored, block)
        norms += [f"{block}.attention_norm", f"{block}.ffn_norm"]
    for norm in norms:
        weights |= {f"{norm}.{part}": stored[f"{norm}.{part}"] for part in ("weight", "bias")}
    return weights


def _block(stored: Arrays, block: str) -> dict[str, NDArray[np.float32]]:
    weights = {
        f"{block}.{part}.weight": _linear(stored, f"{block}.{part}")
        for part in ("query", "key", "value")
    }
    query_bias = stored[f"{block}.query.bias"]
    # a bias of the keys does not affect attention, and the graph adds the bias of the values later
    weights |= {
        f"{block}.query.bias": query_bias,
        f"{block}.key.bias": np.zeros_like(query_bias),
        f"{block}.value.bias": np.zeros_like(query_bias),
    }
    # the export merges the factors of `output` into the values, so equal norms are restored
    value, output = weights[f"{block}.value.weight"], _dequantized(stored, f"{block}.output")
    balance = np.sqrt(np.linalg.norm(output, axis=0) / np.linalg.norm(value, axis=1))
    weights[f"{block}.value.weight"] = value * balance[:, None]
    weights[f"{block}.output.weight"] = output / balance
    inner = [f"{block}.ffn_in.{kind}" for kind in ("float32", "int8")]
    factors = stored[f"{block}.ffn_in{_FACTORS}"]
    weights[f"{block}.ffn_in.weight"] = np.concatenate(
        [_dequantized(stored, name) * factors for name in inner]
    )
    weights[f"{block}.ffn_in.bias"] = np.concatenate([stored[f"{name}.bias"] for name in inner])
    outer = f"{block}.ffn_out"
    weights[f"{outer}.weight"] = np.concatenate(
        [stored[f"{outer}.float32_weight"], _dequantized(stored, outer)], axis=1
    )
    for name in ("output", "ffn_out"):
        weights[f"{block}.{name}.bias"] = stored[f"{block}.{name}.bias"]
    return weights


def _linear(stored: Arrays, name: str) -> NDArray[np.float32]:
    """Return the weight (out, in) of a layer whose input has factors and float32 channels."""
    block, _, part = name.rpartition(".")
    # layers with the same input share their factors, under the joined names of the layers
    [shared] = [
        key.removesuffix(_FACTORS)
        for key in stored
        if key.endswith(_FACTORS) and f"{block}.{part}" in key.removesuffix(_FACTORS).split("+")
    ]
    weight = _dequantized(stored, name) * stored[f"{shared}{_FACTORS}"]
    weight[:, stored[f"{shared}.float32"]] = stored[f"{name}.float32_weight"]
    return weight


def _dequantized(stored: Arrays, name: str) -> NDArray[np.float32]:
    """Return the float32 form (out, in) of an int8 weight (in, out) with scales (out,)."""
    weight: NDArray[np.float32] = (
        stored[f"{name}.weight"].astype(np.float32) * stored[f"{name}.scales"]
    ).T
    return weight


def main(arguments: list[str] | None = None) -> None:
    """Write the checkpoint of a bundle."""
    parser = argparse.ArgumentParser(prog="python -m export.restore", description=__doc__)
    parser.add_argument("bundle", type=Path, help="directory of the bundle")
    parser.add_argument("output", type=Path, help="directory for the checkpoint")
    options = parser.parse_args(arguments)
    bundle = read_bundle(options.bundle)
    save_checkpoint(options.output, restore(bundle), bundle.tokenizer_path.read_bytes())


if __name__ == "__main__":
    main()
