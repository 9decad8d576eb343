"""Statistics of the inputs of each linear map."""

from __future__ import annotations

import numpy as np
import torch

from model.quantization.calibration import collect_statistics
from model.quantization.input_recorder import VOCABULARY
from tests.model.samples import random_encoder, small_config


def test_statistics_are_those_of_the_inputs() -> None:
    """The test covers the query map of the first block, whose inputs are the embeddings."""
    model = random_encoder(small_config(num_layers=1))
    texts = [np.array([5, 6, 7, 8]), np.array([9, 10])]
    statistics = collect_statistics(model, texts, mask_token_id=0)
    seen: list[np.ndarray] = []
    hook = model.embeddings.register_forward_hook(
        lambda _module, _inputs, output: seen.append(output[0].double().numpy())
    )
    collect_statistics(model, texts, mask_token_id=0)
    hook.remove()
    x = np.concatenate(seen)
    assert x.shape == (6, 24)
    found = statistics["blocks.0.query"]
    np.testing.assert_allclose(found.gram, x.T @ x, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.rows, x, rtol=1e-6)


def test_the_attention_output_is_seen_without_the_values_bias() -> None:
    """The served graph moves the bias of the values into the bias of the output."""
    model = random_encoder(small_config(num_layers=1))
    statistics = collect_statistics(model, [np.array([5])], mask_token_id=0)
    weight = model.get_parameter("blocks.0.value.weight").detach().numpy()
    expected = statistics["blocks.0.query"].rows @ weight.T
    np.testing.assert_allclose(statistics["blocks.0.output"].rows, expected, atol=1e-5)


def test_every_linear_map_has_statistics_and_no_hook_is_left() -> None:
    """Each linear map of blocks and head has one hook during calibration and none afterwards."""
    model = random_encoder(small_config())
    statistics = collect_statistics(model, [np.array([3, 4, 5])], mask_token_id=0)
    linear = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    assert set(statistics) == linear | {VOCABULARY}
    assert not any(module._forward_pre_hooks for module in model.modules())
    assert statistics["blocks.1.ffn_out"].gram.shape == (40, 40)
