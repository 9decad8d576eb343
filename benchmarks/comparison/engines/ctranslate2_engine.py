"""CTranslate2's encoder with a masked-language-model head in another library.

Shapes: N texts, T tokens of the longest text, M masks of all texts, D width of the encoder,
V tokens of the vocabulary.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.comparison.engines.graphs import at_masks, onnxruntime_session
from fillmask.arrays import FloatArray
from fillmask.tokenization.encoded_text import EncodedText

# files of the head, not in `ctranslate2_model`, whose imports would add to the memory of servers
HEAD, HEAD_INT8, HEAD_ARRAYS = "head.onnx", "head-int8.onnx", "head.npz"

# function that computes the logits (M, V) of hidden states (M, D)
Head = Callable[[FloatArray], FloatArray]

NUMPY, PYTORCH, ONNXRUNTIME = "NumPy", "PyTorch", "onnxruntime"
ONNXRUNTIME_INT8 = "onnxruntime int8"
HEADS = (NUMPY, PYTORCH, ONNXRUNTIME, ONNXRUNTIME_INT8)


class CTranslate2Engine:
    """Engine of CTranslate2 with one of four heads.

    Args:
        directory: directory of `ctranslate2_model.convert`.
        precision: precision of the encoder, "int8" or "float32".
        head: library of the head, one of HEADS.
        workers: number of concurrent runs (`inter_threads`).
        threads: number of threads per run (`intra_threads`).
    """

    def __init__(
        self, directory: Path, precision: str, head: str, workers: int, threads: int
    ) -> None:
        # imported here, because only the environment of `make comparison` has CTranslate2
        import ctranslate2  # type: ignore[import-not-found]  # noqa: PLC0415

        self._encoder = ctranslate2.Encoder(
            str(directory),
            compute_type=precision,
            inter_threads=workers,
            intra_threads=threads,
        )
        self._head = load_head(directory, head, threads)

    def logits(self, texts: Sequence[EncodedText]) -> FloatArray:
        """Compute the logits (M, V) at the masks of texts. Several threads may call the method."""
        output = self._encoder.forward_batch([text.input_ids.tolist() for text in texts])
        return self._head(at_masks(np.asarray(output.last_hidden_state), texts))


def load_head(directory: Path, library: str, threads: int) -> Head:
    """Load the head of a directory of `ctranslate2_model.write_head` in one of HEADS."""
    if library == NUMPY:
        return _numpy_head(directory)
    if library == PYTORCH:
        return _pytorch_head(directory, threads)
    file = {ONNXRUNTIME: HEAD, ONNXRUNTIME_INT8: HEAD_INT8}[library]
    session = onnxruntime_session(directory / file, threads)

    def compute(hidden_MD: FloatArray) -> FloatArray:
        logits_MV: FloatArray = session.run(["logits"], {"hidden": hidden_MD})[0]
        return logits_MV

    return compute


def _numpy_head(directory: Path) -> Head:
    from scipy.special import erf  # noqa: PLC0415 - the other engines need no SciPy

    with np.load(directory / HEAD_ARRAYS) as stored:
        arrays = {name: stored[name] for name in stored.files}

    def compute(hidden_MD: FloatArray) -> FloatArray:
        x_MD = hidden_MD @ arrays["dense"] + arrays["dense_bias"]
        x_MD *= 0.5 * (1 + erf(x_MD * np.float32(0.5**0.5)))
        x_MD -= x_MD.mean(axis=1, keepdims=True)
        x_MD /= np.sqrt(np.square(x_MD).mean(axis=1, keepdims=True) + arrays["epsilon"])
        x_MD = x_MD * arrays["gamma"] + arrays["beta"]
        logits_MV: FloatArray = x_MD @ arrays["table"] + arrays["bias"]
        return logits_MV

    return compute


def _pytorch_head(directory: Path, threads: int) -> Head:
    import torch  # noqa: PLC0415 - the other engines need no PyTorch
    from torch.nn import functional  # noqa: PLC0415

    with np.load(directory / HEAD_ARRAYS) as stored:
        arrays = {name: torch.from_numpy(stored[name]) for name in stored.files}
    transposed = {name: arrays[name].T.contiguous() for name in ("dense", "table")}
    own = threading.local()

    @torch.inference_mode()
    def compute(hidden_MD: FloatArray) -> FloatArray:
        if not hasattr(own, "set"):  # PyTorch counts threads per calling thread
            torch.set_num_threads(threads)
            own.set = True
        x_MD = functional.linear(
            torch.from_numpy(hidden_MD), transposed["dense"], arrays["dense_bias"]
        )
        x_MD = functional.layer_norm(
            functional.gelu(x_MD),
            x_MD.shape[-1:],
            arrays["gamma"],
            arrays["beta"],
            float(arrays["epsilon"]),
        )
        logits_MV: FloatArray = functional.linear(x_MD, transposed["table"], arrays["bias"]).numpy()
        return logits_MV

    return compute
