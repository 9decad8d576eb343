"""Graphs in onnxruntime and OpenVINO.

Shapes: N texts, T tokens of the longest text, M masks of all texts, V tokens of the vocabulary.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from fillmask.arrays import FloatArray
from fillmask.tokenization.encoded_text import EncodedText

INDICATOR = "mask_indicator"


class Engine(Protocol):
    """Runtime with a loaded graph."""

    def logits(self, texts: Sequence[EncodedText]) -> FloatArray:
        """Compute the logits (M, V) at the masks of texts, in order.

        Several threads may call the method concurrently.
        """


def padded_inputs(
    texts: Sequence[EncodedText], *, indicator: bool
) -> dict[str, NDArray[np.int64] | FloatArray]:
    """Create the inputs of a graph with padded rows.

    Args:
        texts: one or more texts.
        indicator: whether the graph computes logits only at the masks, which its input
            `mask_indicator` marks.
    """
    shape = (len(texts), max(len(text.input_ids) for text in texts))
    input_ids = np.zeros(shape, np.int64)
    attention_mask = np.zeros(shape, np.int64)
    mask_indicator = np.zeros(shape, np.float32)
    for row, text in enumerate(texts):
        input_ids[row, : len(text.input_ids)] = text.input_ids
        attention_mask[row, : len(text.input_ids)] = 1
        mask_indicator[row, text.mask_positions] = 1
    inputs: dict[str, NDArray[np.int64] | FloatArray] = {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
    }
    return inputs | {INDICATOR: mask_indicator} if indicator else inputs


def at_masks(values_NTV: FloatArray, texts: Sequence[EncodedText]) -> FloatArray:
    """Return the rows (M, V) of an array (N, T, V) at the masks of texts, in order."""
    rows_M = np.repeat(np.arange(len(texts)), [len(text.mask_positions) for text in texts])
    columns_M = np.concatenate([text.mask_positions for text in texts])
    values_MV: FloatArray = values_NTV[rows_M, columns_M]
    return values_MV


def onnxruntime_session(
    graph: Path, threads: int, *, spinning: bool = False
) -> ort.InferenceSession:
    """Create a session with onnxruntime's default optimizations.

    Args:
        graph: ONNX file.
        threads: number of threads per run.
        spinning: whether idle threads spin, which takes CPU time from concurrent runs.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
    return ort.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


class OnnxRuntimeEngine:
    """Engine of onnxruntime with its default optimizations.

    Args:
        graph: ONNX file.
        threads: number of threads per run.
        spinning: whether idle threads spin, which takes CPU time from concurrent runs.
    """

    def __init__(self, graph: Path, threads: int, *, spinning: bool = False) -> None:
        self._session = onnxruntime_session(graph, threads, spinning=spinning)
        self._indicator = INDICATOR in {node.name for node in self._session.get_inputs()}

    def logits(self, texts: Sequence[EncodedText]) -> FloatArray:
        """See `Engine`."""
        inputs = padded_inputs(texts, indicator=self._indicator)
        logits: FloatArray = self._session.run(["logits"], inputs)[0]
        return logits if self._indicator else at_masks(logits, texts)


class OpenVinoEngine:
    """OpenVINO's CPU plugin with one inference request per thread.

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
