"""Assembly of an encoder from its configuration and the tensors of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.empty import empty_encoder
from fillmask_model.encoder.encoder import HEAD_PREFIXES, TiedEncoder, new_head
from fillmask_model.files import MAX_LISTED, listed
from fillmask_model.memory import release_memory

VALUES_AT_ONCE = 2**22


def assemble(
    config: EncoderConfig,
    classifier: ClassifierConfig | None,
    tensors: dict[str, Tensor],
    display_name: Callable[[str], str],
    *,
    head_is_new: bool,
) -> TiedEncoder:
    """Create an encoder with given weights, without copying float32 tensors.

    Args:
        classifier: configuration of the classification head. None for an encoder without labels.
        tensors: weights by their names in `TiedEncoder`.
        display_name: function that returns a tensor's name in the checkpoint, for error messages.
        head_is_new: whether to create a new masked-language-model head. In this case, `tensors`
            must not contain such a head.

    Raises:
        ValueError: tensors are missing or unexpected, or have an invalid shape or value.
    """
    model = empty_encoder(config, classifier)
    expected = model.state_dict()
    if head_is_new:
        expected = {n: t for n, t in expected.items() if not n.startswith(HEAD_PREFIXES)}
    _check_tensors(tensors, expected, display_name)
    if whole := [name for name in expected if not tensors[name].is_floating_point()]:
        raise ValueError(
            f"{display_name(whole[0])} must be a tensor of floating-point numbers (got "
            f"{tensors[whole[0]].dtype}); use a checkpoint without quantization"
        )
    weights = {name: tensors[name].float() for name in expected}
    broken = [display_name(name) for name, tensor in weights.items() if not _is_finite(tensor)]
    if broken:
        raise ValueError(f"weights must be finite (got NaN or infinity in {listed(broken)})")
    head = new_head(config) if head_is_new else {}
    model.load_state_dict(weights | head, assign=True)
    model.embeddings.compute_sinusoids()  # checkpoints do not store sinusoids
    release_memory(weights.values())  # the check has loaded every page of a mapped file
    return model


def _is_finite(tensor: Tensor) -> bool:
    """Return whether all values are finite.

    The check runs part by part, because isfinite on a whole table doubles its memory.
    """
    parts = torch.split(tensor.flatten(), VALUES_AT_ONCE)
    return all(bool(part.isfinite().all()) for part in parts)


def _check_tensors(
    tensors: dict[str, Tensor], expected: dict[str, Tensor], display_name: Callable[[str], str]
) -> None:
    problems = []
    if missing := sorted(set(expected) - set(tensors)):
        problems.append(
            f"every tensor must be present (missing: {listed(map(display_name, missing))})"
        )
    if extra := sorted(set(tensors) - set(expected)):
        unknown = listed(map(display_name, extra))
        problems.append(f"the checkpoint must have only known tensors (unknown: {unknown})")
    if wrong := [
        f"{display_name(name)} must have the shape {tuple(expected[name].shape)} "
        f"(got {tuple(tensors[name].shape)})"
        for name in sorted(set(tensors) & set(expected))
        if tensors[name].shape != expected[name].shape
    ]:
        problems += wrong[:MAX_LISTED]
    if problems:
        raise ValueError("; ".join(problems))
