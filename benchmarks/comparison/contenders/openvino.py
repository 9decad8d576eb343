"""OpenVINO's CPU plugin in fp32, bf16 and, after NNCF's quantization, int8."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.comparison.contenders.app import APP
from benchmarks.comparison.contenders.contender import Contender, Job, Setting, Variant, session
from benchmarks.comparison.contenders.engine import at_masks, grouped, padded_inputs
from benchmarks.comparison.workspace import Workspace
from fillmask.arrays import FloatArray
from fillmask.tokenization.encoded_text import EncodedText

# precision of the floating-point operations, of which a trial takes the fastest
HINTS = {"fp32": ("f32",), "bf16": ("bf16",), "int8": ("f32", "bf16")}


def busy(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return a row per precision, with the graph of torch.onnx.export and a stream per CPU."""
    rows = []
    for precision, hints in HINTS.items():
        graph = workspace.full_logits_int8 if precision == "int8" else workspace.full_logits
        weights = " after NNCF's post-training quantization" if precision == "int8" else ""
        command = (*session(workspace, "openvino", graph), "--runs", str(cpus))
        rows.append(
            Contender(
                name=f"OpenVINO {precision}, all logits",
                settings=tuple(
                    Setting(f"{cpus} streams, {hint}", (*command, "--precision", hint))
                    for hint in hints
                ),
                requirements=(*APP, "openvino", "tokenizers", "numpy"),
                exact=precision == "fp32",
                note=f'The graph of "onnxruntime, all logits"{weights}, the throughput hint, one '
                "stream per CPU and one inference request per thread.",
            )
        )
    return rows


def alone(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return a row per precision, with our graph and the latency hint."""
    rows = []
    for precision, hints in HINTS.items():
        command = session(workspace, "openvino", _gather(workspace, precision))
        command += ("--runs", "1", "--threads", str(cpus))
        settings = tuple(
            Setting(f"latency hint, {hint}", (*command, "--precision", hint)) for hint in hints
        )
        rows.append(Contender(_name(precision), settings))
    return rows


def variants(workspace: Workspace) -> list[Variant]:
    """Return a row per precision without HTTP, with a stream per thread."""

    def jobs(
        graph: Path, hint: str, texts_per_run: int, texts: Sequence[EncodedText], threads: int
    ) -> list[Job]:
        engine = OpenVinoEngine(graph, hint, streams=threads, threads=threads)
        return grouped(engine, texts, texts_per_run)

    return [
        Variant(
            _name(precision),
            {
                f"{number} texts per run, {hint}": partial(
                    jobs, _gather(workspace, precision), hint, number
                )
                for number in (1, 8)
                for hint in hints
            },
        )
        for precision, hints in HINTS.items()
    ]


class OpenVinoEngine:
    """OpenVINO with one inference request per thread.

    Args:
        graph: ONNX file or OpenVINO model.
        precision: precision of floating-point operations, "f32" or "bf16".
        streams: number of concurrent inferences. More than one get the throughput hint, a single
            one the latency hint.
        threads: number of threads of all inferences together.
    """

    def __init__(self, graph: Path, precision: str, streams: int, threads: int) -> None:
        # imported here, because only the environment of `make comparison` has OpenVINO
        import openvino  # type: ignore[import-not-found]  # noqa: PLC0415

        config = {
            "PERFORMANCE_HINT": "THROUGHPUT" if streams > 1 else "LATENCY",
            "NUM_STREAMS": streams,
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": precision,
        }
        core = openvino.Core()
        self._model = core.compile_model(core.read_model(graph), "CPU", config)
        self._indicator = len(self._model.inputs) == 3
        self._own = threading.local()

    def logits(self, texts: Sequence[EncodedText]) -> FloatArray:
        """See `Engine`."""
        if not hasattr(self._own, "request"):
            self._own.request = self._model.create_infer_request()
        inputs = padded_inputs(texts, indicator=self._indicator)
        outputs = self._own.request.infer(inputs, share_inputs=True, share_outputs=True)
        logits: FloatArray = outputs[0]
        return logits.copy() if self._indicator else at_masks(logits, texts)


def _name(precision: str) -> str:
    return f"OpenVINO {precision}, gather graph"


def _gather(workspace: Workspace, precision: str) -> Path:
    return workspace.gather_int8 if precision == "int8" else workspace.gather
