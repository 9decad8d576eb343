"""onnxruntime with its default optimizations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import onnxruntime as ort

from benchmarks.comparison.contenders.app import APP
from benchmarks.comparison.contenders.contender import (
    Contender,
    Job,
    Setting,
    Variant,
    runs_by_threads,
    session,
)
from benchmarks.comparison.contenders.engine import INDICATOR, at_masks, grouped, padded_inputs
from benchmarks.comparison.workspace import Workspace
from fillmask.arrays import FloatArray
from fillmask.tokenization.encoded_text import EncodedText

NAME = "onnxruntime, all logits"
GATHER = "onnxruntime, gather graph"


def busy(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return its row with the graph of torch.onnx.export."""
    command = session(workspace, "onnxruntime", workspace.full_logits)
    return [
        Contender(
            name=NAME,
            settings=runs_by_threads(command, cpus),
            requirements=(*APP, "onnxruntime", "tokenizers", "numpy"),
            exact=True,
            note="The graph of torch.onnx.export(dynamo=True), with default optimizations and no "
            "spinning threads.",
        )
    ]


def alone(workspace: Workspace, cpus: int) -> list[Contender]:
    """Return its row with the graph that computes logits only at the masks."""
    command = session(workspace, "onnxruntime", workspace.gather)
    command += ("--runs", "1", "--threads", str(cpus))
    settings = (
        Setting("without spinning threads", command),
        Setting("spinning threads", (*command, "--spinning")),
    )
    return [Contender(GATHER, settings)]


def variants(workspace: Workspace) -> list[Variant]:
    """Return its row without HTTP, with one thread per run."""

    def jobs(texts_per_run: int, texts: Sequence[EncodedText], _threads: int) -> list[Job]:
        return grouped(OnnxRuntimeEngine(workspace.gather, threads=1), texts, texts_per_run)

    return [Variant(GATHER, {f"{n} texts per run": partial(jobs, n) for n in (1, 8)})]


def open_session(graph: Path, threads: int, *, spinning: bool = False) -> ort.InferenceSession:
    """Create a session.

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
    """Graph in onnxruntime, for the arguments see `open_session`."""

    def __init__(self, graph: Path, threads: int, *, spinning: bool = False) -> None:
        self._session = open_session(graph, threads, spinning=spinning)
        self._indicator = INDICATOR in {node.name for node in self._session.get_inputs()}

    def logits(self, texts: Sequence[EncodedText]) -> FloatArray:
        """See `Engine`."""
        inputs = padded_inputs(texts, indicator=self._indicator)
        logits: FloatArray = self._session.run(["logits"], inputs)[0]
        return logits if self._indicator else at_masks(logits, texts)
