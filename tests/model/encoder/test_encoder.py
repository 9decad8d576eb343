"""The configurable encoder, compared with the reference function and the float64 oracle.

Tolerance: 1e-5 absolute on float32 weights, with logits and hidden states of order 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.positions import sinusoidal_positions
from fillmask_model.forward import mlm_forward_tied
from tests.model import oracle
from tests.model.samples import in_float64, random_encoder, random_ids, small_config

TOLERANCE = 1e-5

PRE_NORM: dict[str, Any] = {
    "norm_placement": "pre",
    "embedding_norm": False,
    "final_norm": True,
    "activation": "gelu_tanh",
    "norm_eps": 1e-5,
}
CONFIGS = {
    "bert": small_config(),
    "pre-norm with a final norm": small_config(**PRE_NORM),
    "pre-norm without a final norm": small_config(**(PRE_NORM | {"final_norm": False})),
    "fixed positions, few biases": small_config(
        positions="fixed", attention_bias=False, ffn_bias="input", type_vocab_size=0
    ),
    "plain norms, bare head": small_config(
        norm_affine=False, head_transform=False, head_bias=False, ffn_bias="none"
    ),
    "one wide head, large eps": small_config(num_heads=1, d_ff=7, norm_eps=0.1, num_layers=3),
    "bias without a transform": small_config(head_transform=False, type_vocab_size=5),
}

# three sequences of 9, 4 and 1 tokens
LENGTHS = (9, 4, 1)


def batch(config: EncoderConfig) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ids, mask indicator, attention mask and token types, all padded to (3, 9)."""
    input_ids = random_ids((3, 9), config.vocab_size)
    attention_mask = torch.tensor([[int(t < length) for t in range(9)] for length in LENGTHS])
    mask_indicator = random_ids((3, 9), 2, seed=1) * attention_mask
    mask_indicator[2, 0] = 1
    token_type_ids = random_ids((3, 9), max(config.type_vocab_size, 1), seed=2)
    return input_ids, mask_indicator, attention_mask, token_type_ids


def expected(model: TiedEncoder, inputs: tuple[Tensor, ...]) -> tuple[list[oracle.Floats], Any]:
    """Return the oracle's hidden states, one array per sequence, and its logits at the masks."""
    input_ids, mask_indicator, _, token_type_ids = (tensor.numpy() for tensor in inputs)
    weights = in_float64(model.state_dict())
    hidden = [
        oracle.encoder_hidden(model.config, weights, ids[:length], types[:length])
        for ids, types, length in zip(input_ids, token_type_ids, LENGTHS, strict=True)
    ]
    masked = [hidden[n][t] for n, t in np.argwhere(mask_indicator > 0.5)]
    return hidden, oracle.encoder_logits(model.config, weights, masked)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_agrees_with_the_oracle(config: EncoderConfig) -> None:
    # Logits and hidden states agree to 1e-5, with padding and token types.
    model, inputs = random_encoder(config), batch(config)
    input_ids, mask_indicator, attention_mask, token_type_ids = inputs
    types = token_type_ids if config.type_vocab_size else None
    hidden, logits = expected(model, inputs)
    with torch.inference_mode():
        hidden_NTD = model.hidden(input_ids, attention_mask, types).numpy()
        logits_MV = model(input_ids, mask_indicator, attention_mask, types).numpy()
    for n, length in enumerate(LENGTHS):
        np.testing.assert_allclose(hidden_NTD[n, :length], hidden[n], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(logits_MV, logits, rtol=0, atol=TOLERANCE)


def test_token_types_count_and_default_to_zero() -> None:
    model = random_encoder(small_config())
    input_ids, mask_indicator, attention_mask, _ = batch(model.config)
    zeros = torch.zeros_like(input_ids)
    with torch.inference_mode():
        untyped = model(input_ids, mask_indicator, attention_mask)
        first = model(input_ids, mask_indicator, attention_mask, zeros)
        second = model(input_ids, mask_indicator, attention_mask, zeros + 1)
    assert torch.equal(untyped, first)
    assert (second - first).abs().max() > 0.01
    typeless = random_encoder(small_config(type_vocab_size=0))
    with pytest.raises(ValueError, match="without token types"):
        typeless(input_ids, mask_indicator, attention_mask, zeros)


@pytest.mark.parametrize(("num_heads", "num_layers", "T"), [(1, 1, 5), (4, 2, 9), (2, 12, 16)])
def test_packed_form_is_the_reference_function(num_heads: int, num_layers: int, T: int) -> None:
    # On the same weights the logits agree to 1e-5.
    config = EncoderConfig.packed(
        vocab_size=37, d_model=16, num_layers=num_layers, num_heads=num_heads, max_positions=T
    )
    model = random_encoder(config)
    names = ("query", "key", "value", "output", "ffn_in", "ffn_out")
    state = model.state_dict()
    blocks_weights = torch.stack(
        [
            torch.stack([state[f"blocks.{layer}.{name}.weight"].T for name in names])
            for layer in range(num_layers)
        ]
    )
    table, positions = state["embeddings.word.weight"], state["embeddings.position.weight"]
    input_ids, mask_indicator = random_ids((3, T), 37), random_ids((3, T), 2, seed=1)
    reference = mlm_forward_tied(
        input_ids, mask_indicator, table, positions, blocks_weights, num_heads
    )
    with torch.inference_mode():
        logits_MV = model(input_ids, mask_indicator)
    assert set(state) == {"embeddings.word.weight", "embeddings.position.weight"} | {
        f"blocks.{layer}.{name}.weight" for layer in range(num_layers) for name in names
    }
    torch.testing.assert_close(logits_MV, reference, rtol=0, atol=TOLERANCE)


def test_indices_select_the_positions_of_booleans() -> None:
    # Indices may be in any order, in which the hidden states come back.
    config = small_config()
    input_ids, mask_indicator, attention_mask, _ = batch(config)
    model = random_encoder(config)
    booleans = model.hidden(input_ids, attention_mask, selected=mask_indicator > 0)
    indices = mask_indicator.flatten().nonzero().squeeze(1)
    assert len(indices) > 2
    for order in (torch.arange(len(indices)), torch.arange(len(indices)).flip(0)):
        selected = model.hidden(input_ids, attention_mask, selected=indices[order])
        torch.testing.assert_close(selected, booleans[order], rtol=0, atol=0)


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("masks", [[], [(0, 2), (2, 5)]])
def test_only_masked_positions_reach_the_last_feed_forward_part_and_the_head(
    placement: str, masks: list[tuple[int, int]]
) -> None:
    # The parts get M hidden states, never N x T.
    model, seen = random_encoder(small_config(norm_placement=placement)), []
    for name, module in model.named_modules():
        if name.endswith(("ffn_in", "head")):
            module.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape))
    mask_indicator = torch.zeros(3, 9)
    for n, t in masks:
        mask_indicator[n, t] = 1
    assert model(random_ids((3, 9), 61), mask_indicator).shape == (len(masks), 61)
    assert seen == [(3, 9, 24)] * (len(model.blocks) - 1) + [(len(masks), 24)] * 2


def test_an_input_too_long_is_refused() -> None:
    model = random_encoder(small_config())
    model.hidden(random_ids((1, 17), 61))
    with pytest.raises(ValueError, match=r"at most 17 positions \(got 18\)"):
        model.hidden(random_ids((1, 18), 61))


@pytest.mark.parametrize(("positions", "width"), [(1, 2), (50, 24), (600, 6), (9, 7)])
def test_fixed_positions_are_the_sinusoids_of_the_paper(positions: int, width: int) -> None:
    # Sines and cosines of pos / 10000^(2i/D) agree to 1e-6 for any width. They are no parameters.
    found, expected = sinusoidal_positions(positions, width), oracle.sinusoids(positions, width)
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-6)
    state = TiedEncoder(small_config(positions="fixed")).state_dict()
    assert not [name for name in state if "sinusoid" in name or "position" in name]


def test_first_weights_are_berts() -> None:
    # Matrices have mean 0 and deviation 0.02. Biases are 0, and scales of layer norms are 1.
    torch.manual_seed(0)
    model = TiedEncoder(small_config(vocab_size=2000, d_model=96, d_ff=400))
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1 and parameter.numel() > 9000:
            assert parameter.std().item() == pytest.approx(0.02, rel=0.05), name
            assert abs(parameter.mean().item()) < 0.001, name
        elif parameter.ndim == 1:
            is_scale = "norm" in name and name.endswith("weight")
            assert torch.equal(parameter, torch.full_like(parameter, float(is_scale))), name
