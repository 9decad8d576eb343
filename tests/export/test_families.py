"""Checkpoints of every family in both graphs, compared with transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask_export.graph.int8_operators import Int8GraphBuilder
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.reference import reference_graph
from fillmask_export.graph.served import served_graph
from fillmask_export.graph.weights import encoder_weights
from fillmask_export.quantization.weights import int8_weights
from fillmask_model.checkpoints.checkpoint import Checkpoint, load_checkpoint
from fillmask_model.encoder.encoder import TiedEncoder
from tests.model.checkpoints.families.samples import SAMPLES, Inputs, reading_tokens

TOLERANCE = 1e-4  # log-probabilities in nats, fp32
FIRST_OF_FAMILY = {sample.family: name for name, sample in reversed(SAMPLES.items())}.values()


@dataclass(frozen=True, slots=True)
class Case:
    """Encoder of a checkpoint, texts for it, and the results of transformers.

    Attributes:
        inputs: three texts of different length, padded.
        expected: log-probabilities (M, V) of transformers.
    """

    model: TiedEncoder
    inputs: Inputs
    expected: NDArray[np.float32]

    def served(self, builder: GraphBuilder, directory: Path) -> NDArray[np.float32]:
        """Return the log-probabilities (M, V) of the served graph for one batch of all texts."""
        graph = served_graph(builder)
        onnx.checker.check_model(graph, full_check=True)
        onnx.save(graph, directory / "model.onnx")
        vocabulary = np.arange(self.expected.shape[1])
        requests = []
        for ids, real, masked in zip(
            self.inputs.input_ids.numpy(),
            self.inputs.attention_mask.numpy(),
            self.inputs.mask_indicator.numpy(),
            strict=True,
        ):
            positions = np.flatnonzero(masked)
            targets = np.tile(vocabulary, (len(positions), 1))
            requests.append(ModelPass(ids[real == 1], positions, 1, targets))
        outputs = Runtime(directory / "model.onnx").run(Batch.pack(requests))
        np.testing.assert_array_equal(outputs.top_ids[:, 0], outputs.target_log_probs.argmax(1))
        return outputs.target_log_probs


@pytest.fixture(scope="module", params=SAMPLES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    sample, directory = SAMPLES[request.param], tmp_path_factory.mktemp("family")
    theirs = sample.make()
    theirs.save_pretrained(directory)
    inputs = Inputs.of(theirs, sample, reading_tokens(theirs))
    model = load_checkpoint(directory).model
    return Case(model, inputs, inputs.log_probs(theirs).numpy())


def test_the_served_graph_equals_transformers(case: Case, tmp_path: Path) -> None:
    # The comparison covers the log-probabilities of the entire vocabulary in fp32.
    builder = GraphBuilder(case.model.config, encoder_weights(case.model))
    served = case.served(builder, tmp_path)
    np.testing.assert_allclose(served, case.expected, rtol=0, atol=TOLERANCE)


def test_the_reference_graph_equals_transformers(case: Case) -> None:
    graph = reference_graph(case.model.config, encoder_weights(case.model))
    onnx.checker.check_model(graph, full_check=True)
    feed = {
        "input_ids": case.inputs.input_ids.numpy(),
        "attention_mask": case.inputs.attention_mask.numpy(),
        "mask_indicator": case.inputs.mask_indicator.numpy().astype(np.float32),
    }
    results = cast("Sequence[NDArray[np.float32]]", ReferenceEvaluator(graph).run(None, feed))
    logits = results[0]
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(log_probs, case.expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("case", FIRST_OF_FAMILY, indirect=True, scope="module")
def test_int8_comes_close_to_transformers(case: Case, tmp_path: Path) -> None:
    # The mean error is below 1/30 of the log-probabilities' standard deviation over tokens.
    # graph/test_graph.py has every form of encoder in int8.
    generator = np.random.default_rng(4)
    config = case.model.config
    texts = [generator.integers(5, config.vocab_size, config.max_positions) for _ in range(20)]
    checkpoint = Checkpoint(case.model, None, head_is_new=False)
    int8 = int8_weights(checkpoint, texts, config.token_dropout_id or 3, tmp_path)
    builder = Int8GraphBuilder(config, encoder_weights(case.model), int8)
    difference = np.abs(case.served(builder, tmp_path) - case.expected)
    assert difference.mean() < case.expected.std(axis=1).mean() / 30
