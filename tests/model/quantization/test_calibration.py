"""Statistics of the inputs of each linear map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from fillmask_model.encoder.classifier import ClassifierConfig, Pooling
from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.quantization.calibration import calibrate
from fillmask_model.quantization.input_recorder import InputStatistics
from fillmask_model.quantization.layer_precision import VOCABULARY, is_int8_linear
from fillmask_model.quantization.rounding_plan import RoundingPlan
from tests.model.samples import random_encoder, randomise, small_config

# layers with the input of the block, and layers that the graph computes for few tokens
PARTS = ("query", "key", "value", "output", "ffn_in", "ffn_out")
READ = ("query", "output", "ffn_in", "ffn_out")


def statistics_of(
    model: TiedEncoder, texts: list[NDArray[np.int64]], **options: bool
) -> dict[str, InputStatistics]:
    return {
        name: one for some in calibrate(model, texts, 0, **options) for name, one in some.items()
    }


def test_statistics_are_those_of_the_inputs() -> None:
    # The test covers the query map of the first block, whose inputs are the embeddings.
    model = random_encoder(small_config(num_layers=1))
    texts = [np.array([5, 6, 7, 8]), np.array([9, 10])]
    seen: list[np.ndarray] = []
    hook = model.embeddings.register_forward_hook(
        lambda _module, _inputs, output: seen.append(output[0].double().numpy())
    )
    found = statistics_of(model, texts)["blocks.0.query"]
    hook.remove()
    x = np.concatenate(seen)
    assert x.shape == (6, 24)
    np.testing.assert_allclose(found.gram, x.T @ x, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.rows, x, rtol=1e-6)


def test_the_attention_output_is_seen_without_the_values_bias() -> None:
    # The served graph moves the bias of the values into the bias of the output.
    model = random_encoder(small_config(num_layers=1))
    statistics = statistics_of(model, [np.array([5])])
    weight = model.get_parameter("blocks.0.value.weight").detach().numpy()
    expected = statistics["blocks.0.query"].rows @ weight.T
    np.testing.assert_allclose(statistics["blocks.0.output"].rows, expected, atol=1e-5)


def test_every_linear_map_has_statistics_and_no_hook_is_left() -> None:
    # Each linear map of blocks and head has one hook during calibration and none afterwards.
    model = random_encoder(small_config())
    statistics = statistics_of(model, [np.array([3, 4, 5])])
    linear = {name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}
    assert set(statistics) == linear | {VOCABULARY}
    assert not any(module._forward_pre_hooks for module in model.modules())
    assert statistics["blocks.1.ffn_out"].gram.shape == (40, 40)


TEXTS = [np.array([5, 6, 7, 8]), np.array([9, 10]), np.array([11, 12, 13])]


def classifier(pooling: Pooling = "first", **changes: Any) -> TiedEncoder:
    """Return a random encoder with a classification head."""
    head = ClassifierConfig(labels=("a", "b"), pooling=pooling)
    model = TiedEncoder(small_config(**changes), head).eval()
    randomise(model, 0)
    return model


def test_labels_read_the_last_block_at_the_first_token() -> None:
    # In the last block, only the key and value layers read all tokens.
    model = classifier()
    statistics = statistics_of(model, TEXTS, fills=False, labels=True)
    linear = {n for n, module in model.named_modules() if is_int8_linear(n, module)}
    assert set(statistics) == {name for name in linear if not name.startswith("head.")}
    rows = {name: len(one.rows) for name, one in statistics.items()}
    assert {rows[f"blocks.0.{part}"] for part in PARTS} == {9}
    assert rows["blocks.1.key"] == rows["blocks.1.value"] == 9
    assert {rows[f"blocks.1.{part}"] for part in READ} == {3}
    assert statistics["blocks.1.key"] is statistics["blocks.1.value"]
    first = statistics["blocks.1.key"].rows[[0, 4, 6]]
    np.testing.assert_allclose(statistics["blocks.1.query"].rows, first, rtol=1e-6)
    with torch.inference_mode():
        after = [
            model.hidden(torch.from_numpy(ids)[None], selected=torch.arange(len(ids))[None] == 0)
            for ids in TEXTS
        ]
        inner = statistics["blocks.1.ffn_out"].rows
        recomputed = model.blocks[1].ffn_norm(  # type: ignore[operator]  # nn.ModuleList returns modules
            torch.from_numpy(statistics["blocks.1.ffn_in"].rows)
            + model.blocks[1].ffn_out(torch.from_numpy(inner))  # type: ignore[operator]
        )
    np.testing.assert_allclose(recomputed, torch.cat(after), atol=1e-5)


@pytest.mark.parametrize(
    ("pooling", "changes", "rows"), [("mean", {}, 9), ("first", {"block_order": (0, 0)}, 18)]
)
def test_a_mean_and_shared_blocks_read_all_tokens(
    pooling: Pooling, changes: dict[str, Any], rows: int
) -> None:
    # A shared block also computes earlier layers, which need all tokens.
    model = classifier(pooling, **changes)
    statistics = statistics_of(model, TEXTS, fills=False, labels=True)
    assert {len(one.rows) for one in statistics.values()} == {rows}


def test_both_heads_use_texts_with_and_without_masks() -> None:
    model = classifier()
    both = statistics_of(model, TEXTS, labels=True)
    fills = statistics_of(model, TEXTS)
    labels = statistics_of(model, TEXTS, fills=False, labels=True)
    for name, one in both.items():
        gram = fills[name].gram + (labels[name].gram if name in labels else 0)
        np.testing.assert_allclose(one.gram, gram, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("labels", [True, False])
def test_the_plan_groups_layers_by_their_inputs(labels: bool) -> None:  # noqa: FBT001 - pytest passes it by name
    model = classifier()
    statistics = statistics_of(model, TEXTS, fills=not labels, labels=labels)
    factors = RoundingPlan.from_statistics(model, [statistics]).factors
    assert (VOCABULARY in factors) is ("head.dense" in factors) is not labels
    assert factors["blocks.0.query"] is factors["blocks.0.key"] is factors["blocks.0.value"]
    assert factors["blocks.1.key"] is factors["blocks.1.value"]
    assert (factors["blocks.1.query"] is factors["blocks.1.key"]) is not labels
