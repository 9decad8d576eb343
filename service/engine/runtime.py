"""Inference session of the served graph: the only module that imports onnxruntime."""

import functools
import os
from pathlib import Path

# onnxruntime sends usage records to its maker and writes an id for them under the home directory.
# Only this variable, set before the import, prevents that: onnxruntime's own
# disable_telemetry_events() comes too late.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as ort

from service.bundles.bundle import WEIGHTS_FILE
from service.engine.batch_arrays import Batch, BatchOutputs
from service.engine.memory import collapse_heap, copy_mapped_file, return_free_memory
from service.errors import BundleError
from service.host import may_saturate_int8

_INT64, _FLOAT32 = "tensor(int64)", "tensor(float)"
# name -> (element type, number of axes); service.engine.batch_arrays explains the axes
_INPUTS = {
    "input_ids": (_INT64, 1),
    "positions": (_INT64, 1),
    "pad_index": (_INT64, 2),
    "slot_texts": (_INT64, 2),
    "unpad_index": (_INT64, 1),
    "query_index": (_INT64, 2),
    "query_texts": (_INT64, 2),
    "mask_slots": (_INT64, 1),
    "top_k": (_INT64, 1),
    "target_ids": (_INT64, 2),
}
_OUTPUTS = {
    "top_ids": (_INT64, 2),
    "top_log_probs": (_FLOAT32, 2),
    "target_log_probs": (_FLOAT32, 2),
}


class Runtime:
    """A loaded graph that any number of threads may run at the same time.

    Args:
        model_path: the ONNX file.
        threads_per_run: threads that share one run. With 1, a run stays on the calling thread, and
            one run per CPU at the same time gives the most throughput.
        pack: repack the weights for faster products, which takes their memory a second time.

    Attributes:
        weights_copied: whether all weights are in memory, so that changes of the file cannot
            change results.

    Raises:
        BundleError: the file cannot be loaded, or its inputs and outputs differ from those of the
            served graph.
    """

    def __init__(self, model_path: Path, threads_per_run: int = 1, *, pack: bool = True) -> None:
        _register_arena()
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads_per_run
        options.inter_op_num_threads = 1
        # errors only: they are raised too, and nobody can act on the warnings
        options.log_severity_level = 3
        # Masked attention leaves weights so small (denormal) that Intel's CPUs compute each in
        # microcode (measured: attention 4 times as slow). The first session of the process sets
        # this mode for the thread that creates it; threads inherit it from the thread that starts
        # them.
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        # memory plans hold for one shape, and each batch has another
        options.enable_mem_pattern = False
        options.add_session_config_entry("session.use_env_allocators", "1")
        options.add_session_config_entry("session.disable_prepacking", str(int(not pack)))
        if may_saturate_int8():
            # exact int8 products: they are slower, and on other CPUs the fast ones are exact too
            options.add_session_config_entry("session.x64quantprecision", "1")
        # a thread pool that spins between runs takes the CPU from other runs
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        try:
            self._session = ort.InferenceSession(
                str(model_path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's exceptions have no public base class
            raise BundleError(
                f"The bundle is refused: onnxruntime cannot load {model_path.name}; "
                "export the bundle again."
            ) from error
        _check_nodes(model_path.name, "input", self._session.get_inputs(), _INPUTS)
        _check_nodes(model_path.name, "output", self._session.get_outputs(), _OUTPUTS)
        self.weights_copied = copy_mapped_file(model_path.with_name(WEIGHTS_FILE))
        collapse_heap()  # now that the weights are at their final addresses

    def run(self, batch: Batch) -> BatchOutputs:
        """Compute a batch, without holding the interpreter lock."""
        feed = {name: getattr(batch, name) for name in _INPUTS}
        return BatchOutputs(*self._session.run(list(_OUTPUTS), feed))

    def close(self) -> None:
        """Free the weights. Call it when no run is in progress."""
        del self._session
        return_free_memory()


@functools.cache
def _register_arena() -> None:
    """Make the arena grow by the requested size, not to the next power of two.

    onnxruntime has one such allocator for the whole process.
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


def _check_nodes(
    file: str, kind: str, nodes: list[ort.NodeArg], contract: dict[str, tuple[str, int]]
) -> None:
    found = {node.name: (node.type, len(node.shape)) for node in nodes}
    if found == contract:
        return
    name = min(name for name in found.keys() | contract if found.get(name) != contract.get(name))
    problem = "is unknown" if name not in contract else "is missing"
    if name in found and name in contract:
        element, axes = contract[name]
        problem = f"must be a {element} of {axes} axes"
    raise BundleError(
        f"The bundle is refused: in {file} the {kind} {name} {problem}; export the bundle again."
    )
