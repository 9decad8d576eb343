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
from fillmask_model.checkpoints.checkpoint import (
    FILL_MASK,
    SPARSE,
    TEXT_CLASSIFICATION,
    TOKEN_CLASSIFICATION,
    Checkpoint,
)
from fillmask_model.quantization.calibration import calibrate
from fillmask_model.quantization.input_recorder import InputStatistics
from fillmask_model.quantization.rounding_plan import RoundingPlan


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
    statistics = calibrate(
        model,
        calibration,
        mask_token_id,
        fills=FILL_MASK in tasks,
        labels=bool({TEXT_CLASSIFICATION, TOKEN_CLASSIFICATION, TOKEN_CLASSIFICATION} & {*tasks}),
        sparse=SPARSE in tasks,
        grams=scratch is not None,
    )
    files: dict[str, Path] = {}
    directory = scratch and Path(tempfile.mkdtemp(dir=scratch, prefix="grams-"))

    def gram(name: str) -> NDArray[np.float32] | None:
        return np.load(files[name], mmap_mode="r") if name in files else None

    with stage("smoothing", model.config.num_blocks) as bar:

        def saved() -> Iterator[dict[str, InputStatistics]]:
            for some in statistics:
                if directory is not None:
                    files.update(_save_grams(some, directory))
                yield some
                bar.update(sum(name.endswith(".query") for name in some))  # number of blocks

        plan = RoundingPlan.from_statistics(model, saved())
    return Int8Weights(plan, gram)


def _save_grams(statistics: Mapping[str, InputStatistics], directory: Path) -> dict[str, Path]:
    """Save the Gram matrices of some layers, since all together are too large for the memory.

    Returns:
        The file of each layer's matrix. Layers with the same input share a file.
    """
    files: dict[int, Path] = {}
    for name, one in statistics.items():
        if id(one) not in files:
            files[id(one)] = directory / f"{name}.npy"
            np.save(files[id(one)], one.gram.astype(np.float32))
    return {name: files[id(one)] for name, one in statistics.items()}
