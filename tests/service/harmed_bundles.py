"""Changes that make a bundle unusable although its hashes match."""

import json
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from tests.broken_bundles import put_hashes_right


def loop_in_every_run(path: Path) -> None:
    """Pass the logits of the graph through a loop of 2**62 turns."""
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
    turns = helper.make_node("Constant", [], ["turns"], value_int=2**62)
    loop = helper.make_node("Loop", ["turns", "", "before"], ["logits_MV"], body=body)
    at = next(one for one, node in enumerate(graph.node) if "before" in node.output) + 1
    after = [*graph.node][at:]
    del graph.node[at:]
    graph.node.extend([turns, loop, *after])
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
