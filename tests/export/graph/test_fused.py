"""Fused graphs, compared with the stock graphs over the same weights."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from fillmask.bundles.bundle import Bundle, default_bundle_path
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.linux.native_operators import find_operators
from fillmask.engine.passes import ModelPass
from fillmask.engine.runtime import Runtime
from fillmask_export.bundle import fused_graph
from fillmask_export.bundle.fused_graph import add_fused_graph
from fillmask_export.graph.fused.graph import fuse, packed_weights
from fillmask_export.graph.fused.graph_reader import OPERATORS_VERSION, with_subgraphs
from fillmask_export.graph.operators import GraphBuilder
from fillmask_export.graph.served import served_graph
from fillmask_export.graph.weights import encoder_weights
from fillmask_export.heads.errors import VerificationError
from fillmask_export.heads.fill_mask import FillMask
from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.encoder.sparse import SparsePooling, SparseSettings
from tests.export.graphs import filling, write_graph
from tests.export.samples import CONFIGS, padded_batch, random_text
from tests.model.samples import random_encoder, small_config
from tests.native_package import native_package

TOP_K = 4
WIDE = {"d_model": 64, "num_heads": 2, "d_ff": 96}  # heads that are wide enough for the operator
FUSED_CONFIGS = CONFIGS | {
    "wide heads": small_config(**WIDE),
    "wide heads, windows": small_config(
        **WIDE,
        num_layers=4,
        positions="none",
        rotary_base=1e4,
        local_rotary_base=1e4,
        local_layers=(1, 2),
        local_window=2,
        gated_ffn=True,
    ),
    "wide heads, bias by distance": small_config(**WIDE, relative_buckets=32),
}


def _runtimes(stock: Path, config: EncoderConfig, threads: int = 1) -> tuple[Runtime, Runtime]:
    """Return the stock graph and the fused graph."""
    fused = fuse(onnx.load(stock, load_external_data=False), config.d_model)
    assert fused is not None
    path = stock.with_name("fused.onnx")
    onnx.save(fused, path)
    onnx.checker.check_model(str(path))
    with native_package():
        operators = find_operators(OPERATORS_VERSION, fast=False)
    return Runtime(stock, threads), Runtime(path, threads, operators=operators)


@pytest.fixture(scope="module")
def graph_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Function that returns the stock graph of a configuration, made once for all tests."""

    @cache
    def make(name: str) -> Path:
        checkpoint = filling(random_encoder(FUSED_CONFIGS[name]))
        return write_graph(tmp_path_factory.mktemp("graph"), checkpoint, int8=True)

    return make


def _operators(graph: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for part in with_subgraphs(graph.graph) for node in part.node)


@pytest.mark.parametrize("name", FUSED_CONFIGS)
def test_fills_come_as_close_as_int8_comes_to_pytorch(
    name: str, graph_of: Callable[[str], Path]
) -> None:
    config = FUSED_CONFIGS[name]
    stock, fused = _runtimes(graph_of(name), config)
    batch = padded_batch(config.vocab_size)
    every = np.tile(np.arange(config.vocab_size), (5, 1))
    requests = Batch.pack(batch.requests(every, TOP_K))
    expected, found = (one.run(requests).target_log_probs for one in (stock, fused))
    difference = np.abs(found - expected)
    assert difference.mean() < 0.05 * np.abs(np.diff(expected, axis=0)).mean()


@pytest.mark.parametrize("name", FUSED_CONFIGS)
def test_no_chain_is_left(name: str, graph_of: Callable[[str], Path]) -> None:
    config = FUSED_CONFIGS[name]
    graph = onnx.load(graph_of(name), load_external_data=False)
    fused = fuse(graph, config.d_model)
    assert fused is not None
    before, after = _operators(graph), _operators(fused)
    # the lookup of embeddings dequantizes its rows
    assert not {"MatMulIntegerToFloat", "QuantizeLinear", "Gelu", "Sigmoid"} & after.keys()
    assert 0 < after["Int8Linear"] < before["MatMulIntegerToFloat"]
    # attention with heads of 4 columns, with a window or with a bias stays
    packed = after["PackedAttention"]
    assert packed + after["Attention"] == before["Attention"] == config.num_layers
    expected = {"wide heads": config.num_layers, "wide heads, windows": 2}
    assert packed == expected.get(name, 0)


@pytest.mark.parametrize("name", ["bert", "wide heads", "wide heads, windows"])
@pytest.mark.parametrize("threads", [1, 2])
def test_neighbours_change_no_bit(name: str, threads: int, graph_of: Callable[[str], Path]) -> None:
    config = FUSED_CONFIGS[name]
    _, fused = _runtimes(graph_of(name), config, threads)
    generator = np.random.default_rng(2)
    text = partial(random_text, generator, config.vocab_size, TOP_K)
    ours = text(9, 2)
    alone = fused.run(Batch.pack([ours]))
    strangers = [text(int(generator.integers(1, 18)), 1) for _ in range(32)]
    for place in (0, 1, 16, 32):
        among = Batch.pack([*strangers[:place], ours, *strangers[place:]])
        fills = among.unpack(fused.run(among))[place]
        np.testing.assert_array_equal(fills.top_ids, alone.top_ids)
        if packs_attention(name):  # onnxruntime's attention changes last bits with its shape
            np.testing.assert_array_equal(fills.top_log_probs, alone.top_log_probs)
        else:
            np.testing.assert_allclose(fills.top_log_probs, alone.top_log_probs, atol=2e-3)


def packs_attention(name: str) -> bool:
    return name == "wide heads"


@pytest.mark.parametrize("strategy", ["max", "sum"])
def test_sparse_vectors(strategy: str, tmp_path: Path) -> None:
    config = small_config(**WIDE)
    settings = SparseSettings(SparsePooling("max" if strategy == "max" else "sum"))
    checkpoint = replace(filling(random_encoder(config)), sparse=settings)
    stock, fused = _runtimes(write_graph(tmp_path, checkpoint, int8=True), config)
    generator = np.random.default_rng(5)
    texts = [
        ModelPass.for_head(generator.integers(0, config.vocab_size, length), None, "mean")
        for length in (1, 3, 17, 9)
    ]
    expected, found = _vectors(stock, texts), _vectors(fused, texts)
    assert np.abs(found - expected).mean() < 0.05 * np.abs(expected).mean()


def _vectors(runtime: Runtime, texts: list[ModelPass]) -> NDArray[np.float32]:
    vectors: NDArray[np.float32] = runtime.run(Batch.pack(texts)).pooled
    return vectors


def test_fp32_has_no_fused_form() -> None:
    config = small_config()
    graph = served_graph(
        GraphBuilder(config, encoder_weights(random_encoder(config))), [FillMask()]
    )
    assert fuse(graph, config.d_model) is None


@pytest.mark.parametrize("change", ["one", "all", "nan"])
def test_a_fused_graph_with_other_results_is_not_written(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One number may not differ much, nor all numbers a little.
    names = ["bundle.json", "model.onnx", "tokenizer.json"]
    for name in names:
        shutil.copy(default_bundle_path() / name, tmp_path)
    before = (tmp_path / "bundle.json").read_bytes()
    bundle = Bundle.model_validate(json.loads(before), context=tmp_path)
    golden = bundle.golden.model_dump()
    every = [fill for one in golden["prompts"] for fills in one["fills"] for fill in fills]
    for fill in every if change == "all" else every[:1]:
        fill["log_prob"] += {"one": 1, "all": 0.1, "nan": np.nan}[change]
    for name in ("find_operators", "Runtime"):  # which make golden results
        monkeypatch.setattr(fused_graph, name, Mock())
    monkeypatch.setattr(fused_graph, "golden_results", lambda *_: golden)
    with pytest.raises(VerificationError, match="golden prompts of the fused graph must match"):
        add_fused_graph(bundle, ["a text"])
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert (tmp_path / "bundle.json").read_bytes() == before


def test_the_built_in_graph_is_the_fused_form_of_its_stock_graph() -> None:
    path = default_bundle_path()
    stock, stored = (
        onnx.load(path / name, load_external_data=False) for name in ("model.onnx", "fused.onnx")
    )
    fused = fuse(stock, 384)
    assert fused is not None
    assert fused == stored
    # a service frees the original weights of all layers, but not the tied table
    table = next(one for one in fused.graph.initializer if one.dims[:] == [30522, 384])
    [offset] = [int(one.value) for one in table.external_data if one.key == "offset"]
    packed = packed_weights(fused)
    assert offset not in {start for start, _ in packed}
    # each layer has 32 hidden channels in float32
    assert sum(size for _, size in packed) == 6 * (12 * 384 - 32) * 384 + 384**2
