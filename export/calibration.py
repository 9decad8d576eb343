"""What the inputs of each linear map look like on real text: the ground for rounding to int8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model.encoder import TiedEncoder

MASKED_SHARE = 0.15  # so that the mask token and the head's inputs are seen as in use


@dataclass(slots=True, eq=False)
class InputStatistics:
    """Of the rows (R, in) that entered a linear map.

    Attributes:
        largest: (in,) largest magnitude of each channel.
        gram: (in, in) sum over rows of the outer products.
    """

    largest: NDArray[np.float64]
    gram: NDArray[np.float64]


@torch.inference_mode()
def collect_statistics(
    model: TiedEncoder, texts: Sequence[NDArray[np.int64]], mask_token_id: int
) -> dict[str, InputStatistics]:
    """Run texts, some tokens masked by a fixed seed, and watch every linear map's input.

    Args:
        model: the fp32 encoder.
        texts: token ids of each, special tokens included.
        mask_token_id: the mask.

    Returns:
        Statistics by the map's name, e.g. `blocks.0.query`.
    """
    found: dict[str, InputStatistics] = {}

    def watch(name: str, rows: Tensor) -> None:
        x_RD = rows.reshape(-1, rows.shape[-1])
        largest = x_RD.abs().amax(dim=0).double().numpy()
        gram = (x_RD.T @ x_RD).double().numpy()
        if name in found:
            largest = np.maximum(largest, found[name].largest)
            gram = gram + found[name].gram
        found[name] = InputStatistics(largest, gram)

    hooks = [
        module.register_forward_pre_hook(lambda _, inputs, name=name: watch(name, inputs[0]))
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and not name.endswith((".key", ".value"))
    ]
    generator = np.random.default_rng(0)
    try:
        for ids in texts:
            masked = generator.random(len(ids)) < MASKED_SHARE
            masked[generator.integers(len(ids))] = True  # at least one, for the head to see
            input_ids = torch.from_numpy(np.where(masked, mask_token_id, ids))[None]
            model(input_ids, torch.from_numpy(masked)[None].float())
    finally:
        for hook in hooks:
            hook.remove()
    # keys and values are made of what queries are made of
    for name in [name for name in found if name.endswith(".query")]:
        block = name.removesuffix("query")
        found[f"{block}key"] = found[f"{block}value"] = found[name]
    return found
