"""Tied embeddings: one tensor for the lookup of tokens and the projection onto the vocabulary."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor
from torch.overrides import TorchFunctionMode

from fillmask_model.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.forward import mlm_forward, mlm_forward_tied
from tests.model.samples import random_encoder, random_ids, small_config
from tests.model.tokenizers.tokenizer_samples import TOKENIZER_JSON

TABLE_SHAPE = (61, 24)  # V x D of the small encoder


class TablesUsed(TorchFunctionMode):
    """Recorder of the storages of the V x D tables that `embedding` and `linear` read."""

    def __init__(self) -> None:
        super().__init__()
        self.storages: dict[str, int] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for argument in (*args, *(kwargs or {}).values()):
            if isinstance(argument, torch.nn.Parameter) and argument.shape == TABLE_SHAPE:
                name = getattr(func, "__name__", "")
                if name in {"embedding", "linear"}:
                    self.storages[name] = argument.untyped_storage().data_ptr()
        return func(*args, **(kwargs or {}))


def assert_tied(model: TiedEncoder) -> None:
    """Check that lookup and projection read one storage and that only one V x D table exists."""
    used = TablesUsed()
    input_ids, mask_indicator = random_ids((2, 5), 61), torch.ones(2, 5)
    with torch.no_grad(), used:
        model(input_ids, mask_indicator)
    assert set(used.storages) == {"embedding", "linear"}
    assert len(set(used.storages.values())) == 1
    tables = [p for _, p in model.named_parameters(remove_duplicate=False) if p.ndim == 2]
    assert sum(tuple(p.shape) == TABLE_SHAPE for p in tables) == 1
    assert sum(tuple(t.shape) == TABLE_SHAPE for t in model.state_dict().values()) == 1


def by_assigned_state_dict(model: TiedEncoder) -> TiedEncoder:
    """Return a copy of the encoder, loaded by assignment of its state_dict."""
    second = TiedEncoder(model.config)
    second.load_state_dict(model.state_dict(), assign=True)
    return second


TRANSFORMATIONS: dict[str, Callable[[TiedEncoder], TiedEncoder]] = {
    "construction": lambda model: model,
    "half": lambda model: model.half().float(),
    "deepcopy of a deepcopy in float64": lambda model: copy.deepcopy(copy.deepcopy(model).double()),
    "state_dict, assigned": by_assigned_state_dict,
}


@pytest.mark.parametrize("transform", TRANSFORMATIONS.values(), ids=TRANSFORMATIONS)
def test_tied_after(transform: Callable[[TiedEncoder], TiedEncoder]) -> None:
    assert_tied(transform(random_encoder(small_config())))


def test_tied_after_save_and_load(tmp_path: Path) -> None:
    # The file contains exactly one V x D tensor.
    save_checkpoint(tmp_path, random_encoder(small_config()), TOKENIZER_JSON)
    assert_tied(load_checkpoint(tmp_path).model)
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        shapes = [tuple(file.get_slice(name).get_shape()) for name in file.keys()]  # noqa: SIM118 - safe_open is no dict
    assert shapes.count(TABLE_SHAPE) == 1
    assert sum(shape[0] == 61 and len(shape) == 2 for shape in shapes) == 1


def test_a_copy_is_tied_to_itself_only() -> None:
    model = random_encoder(small_config(head_transform=False, head_bias=False))
    second = copy.deepcopy(model)
    with torch.no_grad():
        second.embeddings.word.weight[7, 3] += 1
        identity = torch.eye(24)
        looked_up = (second.embeddings.word.weight - model.embeddings.word.weight)[7, 3]
        projected = second.logits(identity) - model.logits(identity)
    assert looked_up.item() == pytest.approx(1, abs=1e-6)
    assert projected[3, 7].item() == pytest.approx(1, abs=1e-6)
    assert projected.count_nonzero() == 1


def test_the_gradient_is_the_sum_of_both_paths() -> None:
    config = EncoderConfig.packed(
        vocab_size=61, d_model=24, num_layers=2, num_heads=3, max_positions=9
    )
    model = random_encoder(config).double()
    state = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    names = ("query", "key", "value", "output", "ffn_in", "ffn_out")
    blocks_weights = torch.stack(
        [torch.stack([state[f"blocks.{i}.{name}.weight"].T for name in names]) for i in range(2)]
    )
    input_ids, mask_indicator = random_ids((3, 9), 61), random_ids((3, 9), 2, seed=1)
    labels = random_ids((int(mask_indicator.sum()),), 61, seed=2)

    def loss(logits_MV: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(logits_MV, labels)

    lookup = state["embeddings.word.weight"].clone().requires_grad_()
    projection = state["embeddings.word.weight"].clone().requires_grad_()
    positions = state["embeddings.position.weight"]
    untied = mlm_forward(
        input_ids, mask_indicator, lookup, positions, blocks_weights, projection.T, 3
    )
    by_lookup, by_projection = torch.autograd.grad(loss(untied), (lookup, projection))
    both = by_lookup + by_projection
    assert by_lookup.abs().max() > 1e-3
    assert by_projection.abs().max() > 1e-3

    table = state["embeddings.word.weight"].clone().requires_grad_()
    tied = mlm_forward_tied(input_ids, mask_indicator, table, positions, blocks_weights, 3)
    (of_reference,) = torch.autograd.grad(loss(tied), table)
    torch.testing.assert_close(of_reference, both, rtol=0, atol=1e-12)

    (of_encoder,) = torch.autograd.grad(
        loss(model(input_ids, mask_indicator)), model.embeddings.word.weight
    )
    torch.testing.assert_close(of_encoder, both, rtol=0, atol=1e-12)
