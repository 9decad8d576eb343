"""Inference session of the served graph. No other module imports onnxruntime."""

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

# onnxruntime sends telemetry to Microsoft and stores a telemetry id under the home directory. Only
# this variable prevents both, if it is set before the import.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as ort

from fillmask.bundles.bundle import WEIGHTS_FILE
from fillmask.bundles.description import Pooling, Task
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.linux.helper_threads import HelperThreads
from fillmask.engine.linux.memory import (
    anonymous_mappings,
    copy_mapped_file,
    move_to_huge_pages,
    return_free_memory,
)
from fillmask.engine.linux.native_operators import NativeOperators
from fillmask.engine.passes import BatchOutputs
from fillmask.errors import BundleError
from fillmask.host import may_saturate_int8

_INT64, _FLOAT32 = "tensor(int64)", "tensor(float)"
# Element type and number of axes of each input and output. fillmask.engine.batch_arrays explains
# the axes, and its fields are the inputs.
_Nodes = dict[str, tuple[str, int]]
_TEXT_INPUTS: _Nodes = {
    "input_ids": (_INT64, 1),
    "positions": (_INT64, 1),
    "pad_index": (_INT64, 2),
    "slot_texts": (_INT64, 2),
    "unpad_index": (_INT64, 1),
    "query_index": (_INT64, 2),
    "query_texts": (_INT64, 2),
}
_TOKEN_TYPES: _Nodes = {"token_types": (_INT64, 1)}
# inputs of a classification head that reads the mean of all tokens
_MEAN_INPUTS: _Nodes = {"label_texts": (_INT64, 1), "label_lengths": (_INT64, 1)}
# further inputs, and outputs, by task
_TASKS: dict[Task, tuple[_Nodes, _Nodes]] = {
    "fill-mask": (
        {"mask_slots": (_INT64, 1), "top_k": (_INT64, 1), "target_ids": (_INT64, 2)},
        {
            "top_ids": (_INT64, 2),
            "top_log_probs": (_FLOAT32, 2),
            "target_log_probs": (_FLOAT32, 2),
        },
    ),
    "text-classification": ({"label_slots": (_INT64, 1)}, {"label_logits": (_FLOAT32, 2)}),
    "token-classification": ({"token_slots": (_INT64, 1)}, {"token_logits": (_FLOAT32, 2)}),
    "sparse": (
        {"sparse_slots": (_INT64, 1), "sparse_lengths": (_INT64, 1)},
        {"sparse_weights": (_FLOAT32, 2)},
    ),
}

# the arrays of a head, which each graph calls after its own head
_FIELDS = {
    "label_slots": "pooled_slots",
    "label_texts": "pooled_texts",
    "label_lengths": "pooled_lengths",
    "label_logits": "pooled",
    "sparse_slots": "pooled_slots",
    "sparse_lengths": "pooled_lengths",
    "sparse_weights": "pooled",
    "token_slots": "pooled_slots",
    "token_logits": "tokens",
}


class Runtime:
    """A loaded graph that any number of threads may run at the same time.

    Args:
        threads: number of CPUs for all runs together. A run uses the CPUs that have no run of their
            own (`HelperThreads`).
        pack: whether to repack the weights for faster matrix products. The copy takes as much
            memory as the weights themselves.
        operators: operators of a fused graph. None for other graphs.
        packed: offsets and sizes in bytes of the weights that only these operators read. They have
            their own copy.

    Attributes:
        tasks: tasks of the graph's outputs.
        weights_copied: whether all weights are in memory, so that changes of the file cannot
            change results.

    Raises:
        BundleError: onnxruntime cannot load the file, or the file does not have the inputs and
            outputs of the served graph.
    """

    def __init__(
        self,
        model_path: Path,
        threads: int = 1,
        *,
        pack: bool = True,
        operators: NativeOperators | None = None,
        packed: Sequence[tuple[int, int]] = (),
    ) -> None:
        before = anonymous_mappings()
        _register_arena()
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # logs errors only, because users cannot act on warnings
        options.log_severity_level = 3
        # Masked attention produces denormal weights, which Intel CPUs compute in microcode, so that
        # attention takes 4 times as long. The first session of the process turns them into zeros in
        # its own thread, from which new threads inherit this mode.
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        # onnxruntime's memory plan is valid for one input shape, but the shapes of batches differ
        options.enable_mem_pattern = False
        options.add_session_config_entry("session.use_env_allocators", "1")
        options.add_session_config_entry("session.disable_prepacking", str(int(not pack)))
        if may_saturate_int8():
            # Select exact int8 products, which are slow on this CPU and fast on other CPUs.
            options.add_session_config_entry("session.x64quantprecision", "1")
        # Helper threads spin between the operators of a run, because waking a thread takes longer
        # than most operators. They stop at the end of the last run.
        options.add_session_config_entry("session.intra_op.allow_spinning", "1")
        options.add_session_config_entry("session.force_spinning_stop", "1")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        try:
            if operators is not None:
                options.register_custom_ops_library(str(operators.library))
            self._session = ort.InferenceSession(
                str(model_path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's exceptions have no public base class
            raise BundleError(
                f"The bundle is invalid: onnxruntime cannot load {model_path.name}; "
                "export the bundle again."
            ) from error
        outputs = {node.name for node in self._session.get_outputs()}
        found = tuple(task for task, (_, made) in _TASKS.items() if outputs & made.keys())
        self.tasks: tuple[Task, ...] = found or ("fill-mask",)
        self._inputs, self._outputs = _contract(self._session, self.tasks)
        _check_nodes(model_path.name, "input", self._session.get_inputs(), self._inputs)
        _check_nodes(model_path.name, "output", self._session.get_outputs(), self._outputs)
        self._run_options = ort.RunOptions()
        self._helpers = _helper_threads(self._session, self._inputs, threads)
        self.weights_copied = copy_mapped_file(model_path.with_name(WEIGHTS_FILE), packed)
        move_to_huge_pages(before)  # after the weights have their final addresses

    def run(self, batch: Batch) -> BatchOutputs:
        feed = {name: getattr(batch, _FIELDS.get(name, name)) for name in self._inputs}
        names = list(self._outputs)
        threads = self._helpers.start_run()
        try:
            outputs = self._session.run(names, feed, self._run_options)
        finally:
            self._helpers.end_run()
        fields = [_FIELDS.get(name, name) for name in names]
        return BatchOutputs(**dict(zip(fields, outputs, strict=True)), threads=threads)

    def stop(self) -> None:
        """Make later runs fail, and runs in progress before their next operator."""
        self._run_options.terminate = True

    @property
    def pooling(self) -> Pooling | None:
        if "label_logits" not in self._outputs:
            return None
        return "mean" if _MEAN_INPUTS.keys() & self._inputs.keys() else "first"

    def close(self) -> None:
        """Free the weights. No run may be in progress."""
        self._helpers.close()
        del self._helpers, self._session
        return_free_memory()


def _helper_threads(session: ort.InferenceSession, inputs: _Nodes, threads: int) -> HelperThreads:
    # A run that ends before its first operator calls a function on a pool thread within 0.1 ms.
    ended = ort.RunOptions()
    ended.terminate = True
    feed = {name: np.zeros((1,) * axes, np.int64) for name, (_, axes) in inputs.items()}

    def call_on_pool_thread(function: Callable[..., None]) -> None:
        session.run_async(None, feed, function, None, ended)

    return HelperThreads(call_on_pool_thread, threads - 1)


@functools.cache
def _register_arena() -> None:
    """Make the memory arena grow by the requested size instead of the next power of two.

    All sessions of the process share this arena, so the function registers it only once.
    """
    memory = ort.OrtMemoryInfo(
        "Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT
    )
    same_as_requested = 1
    config = {
        "max_mem": 0,  # no limit
        "arena_extend_strategy": same_as_requested,
        "initial_chunk_size_bytes": -1,  # the default
        "max_dead_bytes_per_chunk": -1,  # the default
    }
    ort.create_and_register_allocator(memory, ort.OrtArenaCfg(config))


def _contract(session: ort.InferenceSession, tasks: Sequence[Task]) -> tuple[_Nodes, _Nodes]:
    """Return the inputs and outputs that the graph must have for its tasks."""
    given = {node.name for node in session.get_inputs()}
    inputs, outputs = dict(_TEXT_INPUTS), _Nodes()
    for task in tasks:
        read, made = _TASKS[task]
        inputs |= read
        outputs |= made
    if given & _TOKEN_TYPES.keys():
        inputs |= _TOKEN_TYPES
    if "text-classification" in tasks and given & _MEAN_INPUTS.keys():
        inputs |= _MEAN_INPUTS
    return inputs, outputs


def _check_nodes(file: str, kind: str, nodes: list[ort.NodeArg], contract: _Nodes) -> None:
    found = {node.name: (node.type, len(node.shape)) for node in nodes}
    if found == contract:
        return
    name = min(name for name in found.keys() | contract if found.get(name) != contract.get(name))
    problem = "is unknown" if name not in contract else "is missing"
    if name in found and name in contract:
        element, axes = contract[name]
        found_element, found_axes = found[name]
        problem = f"must be {element} of rank {axes} (got {found_element} of rank {found_axes})"
    raise BundleError(
        f"The bundle is invalid: in {file} the {kind} {name} {problem}; export the bundle again."
    )
