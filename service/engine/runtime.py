"""onnxruntime behind one narrow class: arrays in, arrays out. No HTTP, no text."""

import functools
import os
from pathlib import Path

# onnxruntime sends records of its use to its maker and writes an id for that under the home
# directory. Only this variable, set before the import, stops it: its own
# disable_telemetry_events() comes too late.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as ort

from service.bundles.bundle import WEIGHTS_FILE
from service.engine.batch import Batch, BatchOutputs
from service.engine.memory import collapse_heap, make_private, return_free_memory
from service.errors import BundleError
from service.host import may_saturate_int8

_INT64, _FLOAT32 = "tensor(int64)", "tensor(float)"
# name -> (element type, number of axes); the axes are explained in service.engine.batch
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
    """A served graph, loaded once and run from as many threads at a time as one likes.

    Args:
        model_path: the ONNX file.
        threads_per_run: threads that share the work of one run. With 1, a run stays on the thread
            that asked for it, and as many runs at once as there are CPUs give the most throughput.
        pack: lay the weights out anew for speed, which takes memory once more.

    Attributes:
        private: whether no file can change its answers any more.

    Raises:
        BundleError: the file cannot be loaded, or its inputs and outputs are not the served
            graph's.
    """

    def __init__(self, model_path: Path, threads_per_run: int = 1, *, pack: bool = True) -> None:
        _register_arena()
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads_per_run
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors: they are raised as well, warnings help nobody
        # The mask of attention leaves weights so small that Intel's CPUs take microcode for each
        # (measured: attention 4 times as slow). The process's first session decides this for the
        # thread that makes it, and threads inherit it from the thread that starts them.
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        # a plan for one shape is worth nothing when each batch has its own
        options.enable_mem_pattern = False
        options.add_session_config_entry("session.use_env_allocators", "1")
        options.add_session_config_entry("session.disable_prepacking", str(int(not pack)))
        if may_saturate_int8():
            # exact int8 products: slower where the fast ones are exact as well, so only here
            options.add_session_config_entry("session.x64quantprecision", "1")
        # a pool that spins between runs takes the CPU from the other runs
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        try:
            self._session = ort.InferenceSession(
                str(model_path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's exceptions have no public base class
            raise BundleError(
                f"The bundle is refused: onnxruntime cannot load {model_path.name}."
            ) from error
        _check_nodes(model_path.name, "input", self._session.get_inputs(), _INPUTS)
        _check_nodes(model_path.name, "output", self._session.get_outputs(), _OUTPUTS)
        self.private = make_private(model_path.with_name(WEIGHTS_FILE))
        collapse_heap()  # the weights are where they will stay

    def run(self, batch: Batch) -> BatchOutputs:
        """Compute a batch; releases the interpreter lock meanwhile."""
        feed = {name: getattr(batch, name) for name in _INPUTS}
        return BatchOutputs(*self._session.run(list(_OUTPUTS), feed))

    def close(self) -> None:
        """Free the weights; to be called once nothing runs any more."""
        del self._session
        return_free_memory()


@functools.cache
def _register_arena() -> None:
    """Have the arena grow by what is asked for, not to the next power of two.

    onnxruntime keeps one such allocator for the process, so it is registered once.
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
    what = "is unknown" if name not in contract else "is missing"
    if name in found and name in contract:
        element, axes = contract[name]
        what = f"must be a {element} of {axes} axes"
    raise BundleError(f"The bundle is refused: in {file} the {kind} {name} {what}.")
