"""Restoration of a checkpoint from a bundle, for further training.

    python -m fillmask_export.restore service/fillmask/bundles/default OUTPUT

The bundle must be in int8 and have BERT's architecture with one token type, like the built-in
bundle. The weights of the checkpoint are the weights of the bundle in float32. The checkpoint has
`max_tokens` positions and no classification head. It also differs from the original checkpoint in
points that do not affect the hidden states:
- The position embeddings include the embedding of token type 0.
- The key and value biases are 0. The bias of attention's output layer contains the value bias.
- The feed-forward units have a different order.
- Each value channel has another scale, for which the weights of attention's output layer
  compensate.

Shapes: M masks.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray

from fillmask.bundles.bundle import Bundle, read_bundle
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.errors import StartupError
from fillmask.parameters.texts import TextPair
from fillmask.tasks.fill_mask.golden import fill_tolerance
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.graph.weights import POSITIONS
from fillmask_export.heads.fill_mask import encoder_log_probs
from fillmask_model.checkpoints.checkpoint import FILES, is_own_checkpoint, save_checkpoint
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TABLE, TiedEncoder
from fillmask_model.output_files import reject_foreign_files

Floats = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]
Weights = dict[str, Floats]
ATTENTION = ("query", "key", "value")
_FACTORS = ".factors"


def restore(bundle: Bundle) -> TiedEncoder:
    """Return the encoder of a bundle in fp32, in evaluation mode.

    Raises:
        ValueError: the bundle does not have BERT's architecture in int8 or does not fill masks, or
            the restored encoder does not reproduce the golden prompts.
    """
    if "fill-mask" not in bundle.tasks:
        raise ValueError(
            f"{bundle.path} must have the task fill-mask (got {', '.join(bundle.tasks)})"
        )
    if bundle.precision != "int8":
        raise ValueError(
            f"{bundle.path} must be in int8 (got {bundle.precision}); train on with the checkpoint "
            "from which it was exported"
        )
    graph = onnx.load(bundle.model_path).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    try:
        model = TiedEncoder(_config(bundle, graph)).eval()
        weights = _weights(stored, model)
        model.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in weights.items()})
    except (KeyError, RuntimeError, ValueError) as error:
        reason = f"no tensor {error.args[0]}" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"{bundle.path} must be a bundle of BERT's architecture ({' '.join(reason.split())})"
        ) from error
    difference, bound = _golden_difference(model, bundle), fill_tolerance(bundle).largest
    if not difference <= bound:
        raise ValueError(
            f"{bundle.path} must be a bundle of BERT's architecture, whose golden prompts the "
            f"restored encoder reproduces to {bound:.2g} nats (got a difference of "
            f"{difference:.2g} nats)"
        )
    return model


def _config(bundle: Bundle, graph: onnx.GraphProto) -> EncoderConfig:
    sizes = bundle.architecture
    nodes = {node.op_type: node for node in graph.node}
    if not {"Gelu", "LayerNormalization"} <= nodes.keys():
        raise ValueError("the graph has no Gelu or LayerNormalization node")
    epsilon = onnx.helper.get_node_attr_value(nodes["LayerNormalization"], "epsilon")
    approximate = onnx.helper.get_node_attr_value(nodes["Gelu"], "approximate")
    return EncoderConfig(
        vocab_size=sizes.vocab_size,
        d_model=sizes.d_model,
        num_layers=sizes.num_layers,
        num_heads=sizes.num_heads,
        d_ff=sizes.d_ff,
        max_positions=bundle.max_tokens,
        type_vocab_size=0,
        # the shortest decimal number of the float32 value in the graph, such as 1e-12
        norm_eps=float(str(np.float32(epsilon))),
        activation="gelu_tanh" if approximate == b"tanh" else "gelu_erf",
    )


def _weights(stored: Arrays, model: TiedEncoder) -> Weights:
    """Return the tensors of the encoder by their names in PyTorch."""
    weights = {
        TABLE: stored[TABLE] * stored[f"{TABLE}.scales"][:, None] * stored[f"{TABLE}{_FACTORS}"],
        "embeddings.position.weight": stored[POSITIONS],
        "head.dense.weight": _smoothed(stored, "head.dense"),
    }
    for layer in range(model.config.num_layers):
        weights |= _block(stored, f"blocks.{layer}")
    for name, tensor in model.state_dict().items():
        if name.endswith("norm.weight"):
            weights[name] = stored[name]
        elif name not in weights:
            # the graph omits biases of zeros, the key bias and the value bias
            weights[name] = stored.get(name, np.zeros(tuple(tensor.shape), np.float32))
    return weights


def _block(stored: Arrays, block: str) -> Weights:
    """Return the matrices of a block, and the bias of its feed-forward units."""
    query, key, value = (_smoothed(stored, f"{block}.{part}") for part in ATTENTION)
    output = _dequantized(stored, f"{block}.output")
    # the export merges the factors of `output` into the values, so equal norms are restored
    norms = np.linalg.norm(value, axis=1), np.linalg.norm(output, axis=0)
    used = (norms[0] > 0) & (norms[1] > 0)
    balance = np.sqrt(np.divide(norms[1], norms[0], out=np.ones_like(norms[0]), where=used))
    inner, outer = f"{block}.ffn_in", f"{block}.ffn_out"
    kinds = [k for k in ("float32", "int8") if f"{inner}.{k}.weight" in stored]
    rows = [_dequantized(stored, f"{inner}.{kind}") for kind in kinds]
    biases = [
        stored.get(f"{inner}.{kind}.bias", np.zeros(len(part), np.float32))
        for kind, part in zip(kinds, rows, strict=True)
    ]
    columns = [stored[f"{outer}.float32_weight"]] if "float32" in kinds else []
    return {
        f"{block}.query.weight": query,
        f"{block}.key.weight": key,
        f"{block}.value.weight": value * balance[:, None],
        f"{block}.output.weight": output / balance,
        f"{inner}.weight": np.concatenate(rows) * stored[f"{inner}{_FACTORS}"],
        f"{inner}.bias": np.concatenate(biases),
        f"{outer}.weight": np.concatenate([*columns, _dequantized(stored, outer)], axis=1),
    }


def _smoothed(stored: Arrays, name: str) -> Floats:
    """Return the weight (out, in) of a layer with smoothed input and float32 channels."""
    # layers with the same input share their factors, under the joined names of the layers
    keys = (key.removesuffix(_FACTORS) for key in stored if key.endswith(_FACTORS))
    key = next((one for one in keys if name in one.split("+")), name)
    weight = _dequantized(stored, name) * stored[f"{key}{_FACTORS}"]
    if f"{key}.float32" in stored:
        weight[:, stored[f"{key}.float32"]] = stored[f"{name}.float32_weight"]
    return weight


def _dequantized(stored: Arrays, name: str) -> Floats:
    """Return the float32 form (out, in) of an int8 weight (in, out) with scales (out,)."""
    weight: Floats = (stored[f"{name}.weight"].astype(np.float32) * stored[f"{name}.scales"]).T
    return weight


def _golden_difference(model: TiedEncoder, bundle: Bundle) -> float:
    """Return the largest difference to a log-probability of the golden prompts, in nats."""
    tokenizer = Tokenizer.from_bundle(bundle)
    differences = []
    for prompt in bundle.golden.prompts:
        pair = prompt.text_pair
        encoded = tokenizer.encode(prompt.text if pair is None else TextPair(prompt.text, pair))
        targets = no_targets(len(prompt.fills))
        request = ModelPass(
            encoded.input_ids, encoded.mask_positions, 1, targets, encoded.token_types
        )
        log_probs_MV = encoder_log_probs(model, [request])
        for row_V, fills in zip(log_probs_MV, prompt.fills, strict=True):
            differences += [abs(float(row_V[fill.token]) - fill.log_prob) for fill in fills]
    return float(np.max(differences))  # NaN counts as the largest number


def main(arguments: list[str] | None = None) -> None:
    """Write the checkpoint of a bundle. An invalid bundle ends the process with exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m fillmask_export.restore", description=__doc__)
    parser.add_argument("bundle", type=Path, help="directory of the bundle")
    parser.add_argument("output", type=Path, help="directory for the checkpoint")
    options = parser.parse_args(arguments)
    try:
        own = is_own_checkpoint(options.output)
        reject_foreign_files(options.output, FILES, own=own)
        bundle = read_bundle(options.bundle)
        save_checkpoint(options.output, restore(bundle), bundle.tokenizer_path.read_bytes())
    except (ValueError, OSError, StartupError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
