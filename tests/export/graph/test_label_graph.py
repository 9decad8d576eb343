"""Logits of labels in the served graph, in batches with and without fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray

from fillmask.arrays import IntArray
from fillmask.bundles.bundle import MODEL_FILE, default_bundle_path
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, PassOutputs
from fillmask.engine.runtime import Runtime
from fillmask_export.graph.int8_operators import Int8GraphBuilder
from fillmask_export.graph.served import served_graph
from fillmask_export.graph.weights import encoder_weights
from fillmask_export.heads.fill_mask import FillMask
from fillmask_export.quantization.weights import Int8Weights
from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.encoder.classifier import ClassifierConfig
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.encoder import TiedEncoder
from tests.export.graphs import NEIGHBOUR_TOLERANCES, in_both_precisions, write_graph
from tests.export.samples import CONFIGS
from tests.model.samples import plan_of, random_encoder, randomise

TOLERANCE = 1e-4  # logits and log-probabilities, against PyTorch in float32
TOP_K = 4
HEADS = {
    "first": ClassifierConfig(labels=("a", "b", "c")),
    "mean": ClassifierConfig(labels=("x",), pooling="mean", activation="gelu_erf", norm=True),
    "output layer": ClassifierConfig(labels=("p", "q"), activation=None),
    "relu": ClassifierConfig(labels=("p", "q"), activation="relu", dense_bias=False),
    "late": ClassifierConfig(labels=("p",), pooling="mean", activation="gelu_erf", pool_last=True),
    "tokens": ClassifierConfig(labels=("a", "b"), pooling="tokens", activation=None),
    "dense tokens": ClassifierConfig(
        labels=("a", "b", "c"), pooling="tokens", activation="gelu_erf", norm=True
    ),
}
# the last block in each form; test_graph.py has every form of encoder
SOME = (
    "bert",
    "narrow embeddings, shared blocks",
    "bias by distance, two tables",
    "windows, gates, few biases",
    "gates with biases, types without positions",
)
POOLINGS = pytest.mark.parametrize("head", ["first", "mean", "tokens"])
KINDS = pytest.mark.parametrize("fills", [True, False], ids=["both heads", "labels"])
EVERY_HEAD = pytest.mark.parametrize(
    ("name", "head"),
    [
        *((name, head) for name in SOME for head in ("first", "mean", "tokens")),
        ("bert", "output layer"),
        ("bert", "relu"),
        ("bert", "late"),
        ("bert", "dense tokens"),
    ],
)


class Sampler:
    """Random encoder with a classification head, its texts and PyTorch's results."""

    def __init__(self, config: EncoderConfig, head: ClassifierConfig) -> None:
        self.model = TiedEncoder(config, head).eval()
        randomise(self.model, 0)
        self.head = head
        self.token_types = max(1, config.type_vocab_size)
        self.restart()

    def restart(self) -> None:
        """Start the random texts again, so that they are the same in any order of the tests."""
        self._generator = np.random.default_rng(3)

    def write_graph(self, directory: Path, *, fills: bool, int8: bool = False) -> Path:
        checkpoint = Checkpoint(self.model, None, head_is_new=not fills)
        return write_graph(directory, checkpoint, int8=int8, token_types=self.token_types)

    def labels(self, tokens: int) -> ModelPass:
        return ModelPass.for_head(self._ids(tokens), self._types(tokens), self.head.pooling)

    def fills(self, tokens: int) -> ModelPass:
        positions = np.array([0, tokens - 1])
        targets = np.array([[1], [2]])
        return ModelPass(self._ids(tokens), positions, TOP_K, targets, self._types(tokens))

    def check(self, text: ModelPass, outputs: PassOutputs) -> None:
        if not len(text.pooled_positions):
            assert outputs.pooled is None
            top = np.take_along_axis(self.log_probs(text), outputs.top_ids, 1)
            np.testing.assert_allclose(outputs.top_log_probs, top, atol=TOLERANCE)
            return
        assert outputs.top_ids.shape[0] == 0
        np.testing.assert_allclose(outputs.pooled, self.logits(text), atol=TOLERANCE)

    @torch.inference_mode()
    def logits(self, text: ModelPass) -> NDArray[np.float32]:
        """Return the logits (L,) of a text, or (T, L) of its tokens."""
        types = None if text.token_types is None else torch.from_numpy(text.token_types)[None]
        found = self.model.classify(torch.from_numpy(text.input_ids)[None], None, types)
        logits: NDArray[np.float32] = found[0].numpy()
        return logits

    @torch.inference_mode()
    def log_probs(self, text: ModelPass) -> NDArray[np.float32]:
        ids = torch.from_numpy(text.input_ids)[None]
        types = None if text.token_types is None else torch.from_numpy(text.token_types)[None]
        masked = torch.zeros(ids.shape)
        masked[0, text.mask_positions] = 1
        found: NDArray[np.float32] = self.model(ids, masked, None, types).log_softmax(-1).numpy()
        return found

    def _ids(self, tokens: int) -> IntArray:
        return self._generator.integers(0, self.model.config.vocab_size, tokens)

    def _types(self, tokens: int) -> IntArray | None:
        if self.token_types == 1:
            return None
        return np.sort(self._generator.integers(0, self.token_types, tokens))


def logits_of(runtime: Runtime, texts: Sequence[ModelPass]) -> list[NDArray[np.float32]]:
    batch = Batch.pack(texts)
    return [one.pooled for one in batch.unpack(runtime.run(batch))]


Graphs = Callable[..., tuple[Sampler, Runtime]]


@pytest.fixture(scope="module")
def graph_of(tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    """Function that returns an encoder with its graph, which is made once for all tests."""

    @cache
    def make(name: str, head: str, *, fills: bool, int8: bool) -> tuple[Sampler, Runtime]:
        sampler = Sampler(CONFIGS[name], HEADS[head])
        path = sampler.write_graph(tmp_path_factory.mktemp("graph"), fills=fills, int8=int8)
        return sampler, Runtime(path)

    def graph(name: str, head: str, *, fills: bool, int8: bool = False) -> tuple[Sampler, Runtime]:
        sampler, runtime = make(name, head, fills=fills, int8=int8)
        sampler.restart()
        return sampler, runtime

    return graph


@EVERY_HEAD
@KINDS
def test_fp32_agrees_with_pytorch(name: str, head: str, fills: bool, graph_of: Graphs) -> None:  # noqa: FBT001 - pytest passes it by name
    # The batches contain labels and fills, only labels, or only fills.
    sampler, runtime = graph_of(name, head, fills=fills)
    labels = [sampler.labels(tokens) for tokens in (5, 11, 2, 17)]
    masked = [sampler.fills(tokens) for tokens in (4, 9)]
    batches = [labels, labels[:1]]
    if fills:
        mixed = [masked[0], labels[0], labels[1], masked[1], labels[2]]
        batches += [mixed, masked, masked[:1]]
    for texts in batches:
        batch = Batch.pack(texts)
        for text, outputs in zip(texts, batch.unpack(runtime.run(batch)), strict=True):
            sampler.check(text, outputs)


@pytest.mark.parametrize(
    ("name", "fills", "int8"),
    [
        *(("bert", fills, int8) for fills in (True, False) for int8 in (True, False)),
        *((name, not int8, int8) for name in SOME[1:] for int8 in (True, False)),
    ],
)
@POOLINGS
def test_neighbours_change_no_labels(
    name: str,
    head: str,
    fills: bool,  # noqa: FBT001 - pytest passes it by name
    int8: bool,  # noqa: FBT001 - pytest passes it by name
    graph_of: Graphs,
) -> None:
    # A text gets the same logits alone and at every place among 32 other texts.
    sampler, runtime = graph_of(name, head, fills=fills, int8=int8)
    ours = sampler.labels(9)
    alone = logits_of(runtime, [ours])[0]
    generator = np.random.default_rng(2)
    strangers = [
        sampler.fills(tokens) if fills and tokens % 2 else sampler.labels(tokens)
        for tokens in generator.integers(2, 18, 32).tolist()
    ]
    for place in (0, 1, 16, 31, 32):
        among = Batch.pack([*strangers[:place], ours, *strangers[place:]])
        found = among.unpack(runtime.run(among))[place].pooled
        np.testing.assert_allclose(found, alone, atol=NEIGHBOUR_TOLERANCES[int8])


@pytest.mark.parametrize(
    ("name", "fills"), [("bert", True), *((name, False) for name in SOME)], ids=str
)
@POOLINGS
def test_int8_comes_close_to_pytorch(name: str, head: str, fills: bool, graph_of: Graphs) -> None:  # noqa: FBT001 - pytest passes it by name
    # The mean error is below 5 % of the logits' root mean square.
    sampler, runtime = graph_of(name, head, fills=fills, int8=True)
    texts = [sampler.labels(tokens) for tokens in range(2, 18)]
    found = np.concatenate([np.atleast_2d(one) for one in logits_of(runtime, texts)])
    expected = np.concatenate([np.atleast_2d(sampler.logits(text)) for text in texts])
    scale = np.sqrt(np.square(expected).mean())
    assert np.abs(found - expected).mean() < 0.05 * scale


@in_both_precisions
def test_a_graph_for_labels_has_no_head_for_fills(int8: bool, tmp_path: Path) -> None:  # noqa: FBT001 - pytest passes it by name
    # The graph contains neither tensors nor nodes that only fills need.
    sampler = Sampler(CONFIGS["bias by distance, two tables"], HEADS["first"])
    graph = onnx.load(sampler.write_graph(tmp_path, fills=False, int8=int8)).graph
    names = {tensor.name for tensor in graph.initializer}
    assert not {name for name in names if name.startswith(("head", "output_table"))}
    assert "Loop" not in {node.op_type for node in graph.node}
    read = {name for node in graph.node for name in node.input}
    outputs = {output.name for output in graph.output}
    unread = [node.op_type for node in graph.node if not {*node.output} & (read | outputs)]
    assert unread == []
    assert names <= read


def test_a_graph_for_fills_alone_is_that_of_the_built_in_bundle() -> None:
    stored = onnx.load(default_bundle_path() / MODEL_FILE, load_external_data=False).graph
    config = EncoderConfig(
        vocab_size=97,
        d_model=384,
        num_layers=6,
        num_heads=12,
        d_ff=1536,
        max_positions=32,
        type_vocab_size=0,
    )
    model = random_encoder(config)
    plan = plan_of(model)
    for layer in range(config.num_layers):
        plan.factors[f"blocks.{layer}.ffn_out"] = (torch.arange(1536) >= 32).float()
    g = Int8GraphBuilder(config, encoder_weights(model), Int8Weights(plan, lambda _: None))
    built = served_graph(g, [FillMask()]).graph
    assert [node.SerializeToString() for node in built.node] == [
        node.SerializeToString() for node in stored.node
    ]
    for kind in ("input", "output"):
        found, expected = ([one.name for one in getattr(x, kind)] for x in (built, stored))
        assert found == expected
