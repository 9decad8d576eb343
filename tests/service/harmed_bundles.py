"""Changes that make a bundle unusable although its hashes match."""

import json
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from tests.broken_bundles import put_hashes_right
from tests.service.tiny import MASK_ID

TURNS = 2**62


def loop_in_every_run(path: Path) -> None:
    """Add a loop of 2**62 turns to the graph."""
    node = helper.make_node("Constant", [], ["turns"], value_int=TURNS)
    _add_loop(path, [node])


def loop_in_golden_prompts(path: Path) -> None:
    """Add a loop that has no turns for a batch of masks, and 2**62 turns for other tokens."""
    node = helper.make_node
    _add_loop(
        path,
        [
            node("Constant", [], ["most"], value_int=TURNS),
            node("Constant", [], ["mask"], value_int=MASK_ID),
            node("Constant", [], ["one"], value_int=1),
            node("ReduceMax", ["input_ids"], ["largest"], keepdims=0),
            node("Sub", ["largest", "mask"], ["above"]),
            node("Min", ["above", "one"], ["least"]),
            node("Mul", ["least", "most"], ["turns"]),
        ],
    )


def _add_loop(path: Path, nodes: list[onnx.NodeProto]) -> None:
    """Pass the logits through a loop whose number of turns the nodes compute."""
    model = onnx.load(path / "model.onnx", load_external_data=False)
    graph = model.graph
    [last] = [one for one in graph.node if "logits_MV" in one.output]
    last.output[0] = "before"
    value = helper.make_tensor_value_info
    flag: tuple[int, list[str]] = (TensorProto.BOOL, [])
    logits = (TensorProto.FLOAT, ["M", "V"])
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go_on"], ["goes_on"]),
            helper.make_node("Neg", ["logits"], ["negated"]),
        ],
        "body",
        [value("turn", TensorProto.INT64, []), value("go_on", *flag), value("logits", *logits)],
        [value("goes_on", *flag), value("negated", *logits)],
    )
    loop = helper.make_node("Loop", ["turns", "", "before"], ["logits_MV"], body=body)
    at = next(one for one, node in enumerate(graph.node) if "before" in node.output) + 1
    after = [*graph.node][at:]
    del graph.node[at:]
    graph.node.extend([*nodes, loop, *after])
    onnx.save(model, path / "model.onnx")
    put_hashes_right(path)


def panic_at_the_load(path: Path) -> None:
    """Make the tokenizers library panic while it reads the tokenizer."""
    _edit_tokenizer(path, normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"})


def panic_at_a_text(path: Path) -> None:
    """Make the tokenizers library panic at each text."""
    _edit_tokenizer(path, pre_tokenizer={"type": "FixedLength", "length": 0})


def _edit_tokenizer(path: Path, **changes: Any) -> None:
    file = path / "tokenizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    put_hashes_right(path)
