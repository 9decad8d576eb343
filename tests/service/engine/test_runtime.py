"""Results of the runtime, compared with the oracle. Rejection of invalid graphs."""

import platform
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask.errors import BundleError
from tests.service.server_process import run_process
from tests.service.tiny import MAX_TOKENS, VOCABULARY, Tiny

TOLERANCE = 2e-5  # float32 sums differ from float64


def random_pass(rng: np.random.Generator) -> ModelPass:
    """Make a pass with random tokens, masks and targets."""
    ids = rng.integers(0, len(VOCABULARY), rng.integers(2, MAX_TOKENS + 1))
    masks = np.sort(rng.permutation(len(ids))[: rng.integers(1, 4)])
    targets = rng.integers(0, len(VOCABULARY), (len(masks), rng.integers(0, 3)))
    return ModelPass(ids, masks, int(rng.integers(1, 9)), targets)


def check(tiny: Tiny, runtime: Runtime, passes: list[ModelPass]) -> None:
    """Compare the results of one batch of passes with the oracle's result for each pass."""
    batch = Batch.pack(passes)
    for one, outputs in zip(passes, batch.unpack(runtime.run(batch)), strict=True):
        assert outputs.top_ids.shape == (len(one.mask_positions), one.top_k)
        for mask, position in enumerate(one.mask_positions.tolist()):
            expected = tiny.log_probs(one.input_ids.tolist(), position)
            best = np.sort(expected)[::-1][: one.top_k]
            np.testing.assert_allclose(outputs.top_log_probs[mask], best, atol=TOLERANCE)
            np.testing.assert_allclose(expected[outputs.top_ids[mask]], best, atol=TOLERANCE)
            np.testing.assert_allclose(
                outputs.target_log_probs[mask], expected[one.target_ids[mask]], atol=TOLERANCE
            )


def test_weights_are_moved_to_huge_pages(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    # The runtime moves the weights once per loaded graph.
    calls = []
    monkeypatch.setattr("fillmask.engine.runtime.move_to_huge_pages", lambda _: calls.append(1))
    runtime = Runtime(tiny.path / "model.onnx")
    check(tiny, runtime, [random_pass(np.random.default_rng(0))])
    assert calls == [1]


def test_several_threads_run_at_the_same_time(tiny: Tiny) -> None:
    # The oracle computes each text of a batch alone, in float64.
    runtime = Runtime(tiny.path / "model.onnx")

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(5):
            check(tiny, runtime, [random_pass(rng) for _ in range(3)])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))


FLUSHED = """
import sys, threading
from pathlib import Path
import numpy as np
from fillmask.engine.runtime import Runtime

def smallest():
    print(float(np.float32(1e-40) * np.float32(1)))

smallest()
Runtime(Path(sys.argv[1]))
worker = threading.Thread(target=smallest)
worker.start()
worker.join()
"""


@pytest.mark.processes
@pytest.mark.skipif(platform.machine() != "x86_64", reason="other CPUs have no slow path for them")
def test_threads_flush_denormals_to_zero(tiny: Tiny) -> None:
    # Without flushing to zero, arithmetic with denormals is a hundred times slower.
    # The runtime changes the mode of threads that start later.
    printed = run_process(FLUSHED, str(tiny.path / "model.onnx")).stdout
    before, after = map(float, printed.split())
    assert before == pytest.approx(1e-40)
    assert after == 0


@pytest.mark.parametrize("damage", ["no model", "a custom operator"])
def test_a_graph_that_onnxruntime_cannot_load_is_rejected(
    damage: str, tiny: Tiny, tmp_path: Path
) -> None:
    model = onnx.load(tiny.path / "model.onnx")
    model.graph.node[0].domain = "com.example"
    model.opset_import.add(domain="com.example", version=1)
    onnx.save(model, tmp_path / "model.onnx")
    if damage == "no model":
        (tmp_path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(BundleError, match=r"onnxruntime cannot load model.onnx"):
        Runtime(tmp_path / "model.onnx")


@pytest.mark.parametrize("place", ["../elsewhere", "absolute", "link"])
def test_weights_outside_the_bundle_are_rejected(place: str, tiny: Tiny, tmp_path: Path) -> None:
    # A graph cannot read files outside its bundle as weights.
    elsewhere, directory = tmp_path / "elsewhere", tmp_path / "bundle"
    directory.mkdir()
    model = onnx.load(tiny.path / "model.onnx")
    table = next(one for one in model.graph.initializer if one.name == "words")
    elsewhere.write_bytes(table.raw_data)
    (directory / "inside").write_bytes(table.raw_data)
    (directory / "link").symlink_to(elsewhere)
    table.ClearField("raw_data")
    table.data_location = onnx.TensorProto.EXTERNAL
    location = table.external_data.add(key="location", value="inside")
    onnx.save(model, directory / "model.onnx")
    Runtime(directory / "model.onnx")
    location.value = str(elsewhere) if place == "absolute" else place
    onnx.save(model, directory / "model.onnx")
    with pytest.raises(BundleError, match=r"onnxruntime cannot load model.onnx"):
        Runtime(directory / "model.onnx")


def rename(model: onnx.ModelProto, old: str, new: str) -> None:
    """Rename an input or output of a graph, also in the nodes that use it."""
    for values in (model.graph.input, model.graph.output):
        for value in values:
            value.name = new if value.name == old else value.name
    for node in model.graph.node:
        node.input[:] = [new if name == old else name for name in node.input]
        node.output[:] = [new if name == old else name for name in node.output]


def add_axis(model: onnx.ModelProto) -> None:
    [unpad_index] = [value for value in model.graph.input if value.name == "unpad_index"]
    unpad_index.type.tensor_type.shape.dim.add().dim_value = 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (partial(rename, old="unpad_index", new="aaa"), "the input aaa is unknown"),
        (partial(rename, old="unpad_index", new="zzz"), "the input unpad_index is missing"),
        (partial(rename, old="top_ids", new="zzz"), "the output top_ids is missing"),
        (
            add_axis,
            "the input unpad_index must be tensor(int64) of rank 1 (got tensor(int64) of rank 2)",
        ),
    ],
)
def test_a_graph_with_other_inputs_or_outputs_is_rejected(
    change: Callable[[onnx.ModelProto], None], reason: str, tiny: Tiny, tmp_path: Path
) -> None:
    model = onnx.load(tiny.path / "model.onnx")
    change(model)
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(BundleError, match=re.escape(f"in model.onnx {reason}")):
        Runtime(tmp_path / "model.onnx")
