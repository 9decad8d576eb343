"""Int8 weights of linear layers, rounded according to a rounding plan."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fillmask_export.progress import stage
from fillmask_export.quantization.rounding import Gram, QuantizedRows, quantize_rows
from fillmask_model.checkpoints.checkpoint import FILL_MASK, SPARSE, TEXT_CLASSIFICATION, Checkpoint
from fillmask_model.quantization.calibration import BlockwiseStatistics
from fillmask_model.quantization.input_recorder import InputStatistics
from fillmask_model.quantization.rounding_plan import RoundingPlan


class SavingStatistics(Mapping[str, InputStatistics]):
    """Input statistics that save the Gram matrices of each block at the first access.

    All matrices together are too large for the memory.

    Args:
        statistics: statistics by layer.
        scratch: directory for the files of the matrices. None to save nothing.
    """

    def __init__(self, statistics: Mapping[str, InputStatistics], scratch: Path | None) -> None:
        self._statistics = statistics
        self._seen: set[str] = set()
        self._files: dict[str, Path] = {}
        self._directory = None
        if scratch is not None:
            self._directory = Path(tempfile.mkdtemp(dir=scratch, prefix="grams-"))
        self._bar = stage("smoothing", len(statistics))

    def gram(self, name: str) -> NDArray[np.float32] | None:
        """Return the saved matrix of a layer, if any."""
        return np.load(self._files[name], mmap_mode="r") if name in self._files else None

    def __getitem__(self, name: str) -> InputStatistics:
        if name not in self._seen:
            block = name.rpartition(".")[0]
            names = [other for other in self._statistics if other.rpartition(".")[0] == block]
            if self._directory is not None:
                self._save(names, self._directory)
            self._seen.update(names)
            self._bar.update(len(names))
            if len(self._seen) == len(self._statistics):
                self._bar.close()
        return self._statistics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statistics)

    def __len__(self) -> int:
        return len(self._statistics)

    def _save(self, names: Sequence[str], directory: Path) -> None:
        files: dict[int, Path] = {}  # layers with the same input share a file
        for name in names:
            gram = self._statistics[name].gram
            if id(gram) not in files:
                files[id(gram)] = directory / f"{name}.npy"
                np.save(files[id(gram)], gram.astype(np.float32))
            self._files[name] = files[id(gram)]


@dataclass(frozen=True, slots=True, eq=False)
class Int8Weights:
    """Rounding of each linear layer's weights.

    A layer computes
    `y = s * (q @ rows.values.T * rows.scales) + x[float_channels] @ float_weight.T`, where q are
    the rounded rows of `x * factors` and s are their scales.

    Attributes:
        plan: factors by the layer's name.
        gram: function that returns the Gram matrix (in, in) of a layer's inputs, or None if
            training has rounded the weights, or for rounding to the nearest value.
    """

    plan: RoundingPlan
    gram: Callable[[str], Gram | None]

    def rounds(self, name: str) -> bool:
        return name in self.plan.factors

    def factors(self, name: str) -> NDArray[np.float32]:
        """Return a layer's factors (in,), with 0 for channels in float32."""
        factors: NDArray[np.float32] = self.plan.factors[name].numpy()
        return factors

    def float_channels(self, name: str) -> NDArray[np.int64]:
        """Return the ascending indices of a layer's input channels in float32, possibly none."""
        return np.flatnonzero(self.factors(name) == 0)

    def int8_channels(self, name: str) -> NDArray[np.int64]:
        """Return the ascending indices of all other channels."""
        return np.flatnonzero(self.factors(name) > 0)

    def rows(self, name: str, weight: NDArray[np.float32]) -> QuantizedRows:
        """Divide a weight (out, in) by the layer's factors and round it.

        Columns of float32 channels become 0.
        """
        return quantize_rows(weight, self.gram(name), self.factors(name))


def int8_weights(
    checkpoint: Checkpoint,
    calibration: Sequence[NDArray[np.int64]],
    mask_token_id: int,
    scratch: Path | None,
) -> Int8Weights:
    """Choose the rounding of an encoder's weights by calibration.

    Weights that training has rounded keep their rounding.

    Args:
        calibration: token ids of real texts.
        scratch: directory for temporary files with Gram matrices, with which later columns
            compensate for rounding errors. None to round each weight to the nearest value.
    """
    if checkpoint.rounding:
        return Int8Weights(checkpoint.rounding, lambda _: None)
    model, tasks = checkpoint.model, checkpoint.tasks
    statistics = BlockwiseStatistics(
        model,
        calibration,
        mask_token_id,
        fills=FILL_MASK in tasks,
        labels=TEXT_CLASSIFICATION in tasks,
        sparse=SPARSE in tasks,
        grams=scratch is not None,
    )
    saving = SavingStatistics(statistics, scratch)
    return Int8Weights(RoundingPlan.from_statistics(model, saving), saving.gram)
