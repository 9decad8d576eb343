"""Copies of a bundle with one defect each."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from fillmask.bundles.bundle import (
    DESCRIPTION_FILE,
    FILES,
    MODEL_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    default_bundle_path,
)

LEAST, MOST = -(2.0**15), 2.0**15 - 1  # range of 16 bits


def copy_bundle(directory: Path, source: Path | None = None) -> Path:
    """Copy a bundle, by default the built-in bundle."""
    shutil.copytree(source or default_bundle_path(), directory)
    return directory


def put_hashes_right(path: Path) -> None:
    """Update the files' sizes and hashes in bundle.json."""

    def files(bundle: dict[str, Any]) -> None:
        for name in FILES:
            content = (path / name).read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            bundle["files"][name] = {"sha256": digest, "bytes": len(content)}

    edit_description(path, files)


def edit_description(path: Path, change: Any) -> None:
    """Change bundle.json in place."""
    file = path / DESCRIPTION_FILE
    bundle = json.loads(file.read_text(encoding="utf-8"))
    change(bundle)
    file.write_text(json.dumps(bundle), encoding="utf-8")


def flip_bits(path: Path, tensor: str, byte: int, bits: int) -> None:
    """Flip bits of one byte of a tensor in the weights file, without an update of the hashes.

    Args:
        tensor: name of the initializer in the graph.
        byte: index of the byte in the tensor, from 0.
        bits: integer whose binary ones select the bits to flip.
    """
    graph = onnx.load(path / MODEL_FILE, load_external_data=False).graph
    [stored] = [one for one in graph.initializer if one.name == tensor]
    [offset] = [int(entry.value) for entry in stored.external_data if entry.key == "offset"]
    with (path / WEIGHTS_FILE).open("r+b") as file:
        file.seek(offset + byte)
        [value] = file.read(1)
        file.seek(offset + byte)
        file.write(bytes([value ^ bits]))


def shift_vocabulary(path: Path) -> None:
    """Give each ordinary token the id of the next ordinary token."""
    file = path / TOKENIZER_FILE
    tokenizer = json.loads(file.read_text(encoding="utf-8"))
    special = {token["id"] for token in tokenizer["added_tokens"]}
    vocabulary = tokenizer["model"]["vocab"]
    ids = [one for one in vocabulary.values() if one not in special]
    next_id = dict(zip(ids, [*ids[1:], ids[0]], strict=True))
    tokenizer["model"]["vocab"] = {
        token: next_id.get(one, one) for token, one in vocabulary.items()
    }
    file.write_text(json.dumps(tokenizer), encoding="utf-8")
    put_hashes_right(path)


def saturate_products(path: Path) -> None:
    """Make int8 products saturate as on x86 without VNNI, where sums of pairs have 16 bits."""
    model = onnx.load(path / MODEL_FILE)
    _saturate(model.graph, {})
    (path / WEIGHTS_FILE).unlink()
    onnx.save(model, path / MODEL_FILE, save_as_external_data=True, location=WEIGHTS_FILE)
    put_hashes_right(path)


def _saturate(graph: GraphProto, zero_points: dict[str, int]) -> None:
    """Replace each MatMulIntegerToFloat of a graph and its subgraphs by sums of pairs."""
    zero_points = zero_points | {
        one.name: int(numpy_helper.to_array(one).item())
        for one in graph.initializer
        if one.name.startswith("zero_point_")
    }
    nodes: list[NodeProto] = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _saturate(attribute.g, zero_points)
        if node.op_type == "MatMulIntegerToFloat":
            nodes += _sums_of_pairs(node, zero_points[node.input[4]])
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _sums_of_pairs(product: NodeProto, zero_point: int) -> list[NodeProto]:
    """Return the nodes that replace one MatMulIntegerToFloat.

    Shapes: R rows of the unsigned input, K inner dimension, N columns of the weights, P pairs along
        K.
    """
    [result] = product.output
    nodes: list[NodeProto] = []

    def add(operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"{result}.{len(nodes)}"
        nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output

    def integers(*values: int) -> str:
        return add("Constant", value_ints=list(values))

    def number(value: float) -> str:
        return add("Constant", value_float=value)

    rows_RK = add("Cast", product.input[0], to=TensorProto.FLOAT)
    columns_KN = add("Cast", product.input[1], to=TensorProto.FLOAT)
    halves = []
    for first in (0, 1):
        ends, steps = integers(2**31), integers(2)
        rows_RP = add("Slice", rows_RK, integers(first), ends, integers(1), steps)
        columns_PN = add("Slice", columns_KN, integers(first), ends, integers(0), steps)
        rows_RP1 = add("Unsqueeze", rows_RP, integers(2))
        halves.append(add("Mul", rows_RP1, columns_PN))
    pairs_RPN = add("Clip", add("Add", *halves), number(LEAST), number(MOST))
    sums_RN = add("ReduceSum", pairs_RPN, integers(1), keepdims=0)
    columns_N = add("ReduceSum", columns_KN, integers(0), keepdims=0)
    zeros_N = add("Mul", columns_N, number(float(zero_point)))
    add("Mul", add("Sub", sums_RN, zeros_N), product.input[3], output=result)
    return nodes
