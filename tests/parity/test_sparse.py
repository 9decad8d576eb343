"""Sparse vectors over HTTP, compared with Sentence Transformers on the same weights.

The directories are those that Sentence Transformers writes, and the published form in which the
encoder of a router lies in the root.
"""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from numpy.typing import NDArray

from fillmask.app import create_app
from fillmask.library import FillMask
from fillmask.settings import Settings
from tests.parity.served import TOLERANCE, export, write_checkpoint

LONG = " ".join(["She is in Rome, and Rome is old!"] * 40)
TEXTS = ["She is in Rome.", "a cup of tea", "!", "Where is she? She drank tea in the old city."]


@cache
def oracle() -> Any:
    """Return classes of Sentence Transformers, whose import takes a second in other workers too."""
    from sentence_transformers import SparseEncoder  # noqa: PLC0415
    from sentence_transformers.base.modules import Router, Transformer  # noqa: PLC0415
    from sentence_transformers.sparse_encoder import modules  # noqa: PLC0415

    return SimpleNamespace(
        SparseEncoder=SparseEncoder,
        Router=Router,
        Transformer=Transformer,
        SparseStaticEmbedding=modules.SparseStaticEmbedding,
        SpladePooling=modules.SpladePooling,
    )


def serving(bundle: Path) -> TestClient:
    return TestClient(create_app(Settings(bundle=bundle, threads=1)))


def ask(client: TestClient, inputs: object, size: int, **fields: Any) -> NDArray[np.float64]:
    """Return vectors (N, V) with all dimensions."""
    answer = client.post("/embed_sparse", json={"inputs": inputs, **fields})
    assert answer.status_code == 200, answer.text
    vectors = np.zeros((len(answer.json()), size))
    for row, weights in zip(vectors, answer.json(), strict=True):
        for one in weights:
            row[one["index"]] = one["value"]
    return vectors


def expected(encoder: Any, texts: list[str], **options: Any) -> NDArray[np.float32]:
    vectors = encoder.encode(texts, convert_to_sparse_tensor=False, **options)
    return torch.stack(list(vectors)).numpy()


def mlm_transformer(directory: Path, max_seq_length: int = 48) -> Any:
    options = {"transformer_task": "fill-mask", "max_seq_length": max_seq_length}
    return oracle().Transformer(str(directory), **options)


@pytest.mark.parametrize(
    ("kind", "strategy", "activation"),
    [
        ("BERT", "max", "log1p_relu"),
        ("BERT", "sum", "log1p_relu"),
        ("DistilBERT", "max", "relu"),
        ("RoBERTa", "sum", "relu"),
    ],
)
def test_every_dimension_is_that_of_sentence_transformers(
    kind: str, strategy: Any, activation: Any, tmp_path: Path
) -> None:
    model = write_checkpoint(tmp_path / "plain", kind, "ForMaskedLM")
    pooling = oracle().SpladePooling(strategy, activation)
    encoder = oracle().SparseEncoder(modules=[mlm_transformer(tmp_path / "plain"), pooling])
    encoder.save_pretrained(str(tmp_path / "sparse"))
    size = model.config.vocab_size
    with serving(export(tmp_path / "sparse", tmp_path / "bundle")) as client:
        assert client.get("/info").json()["tasks"] == ["sparse"]
        found = ask(client, TEXTS, size)
        np.testing.assert_allclose(found, expected(encoder, TEXTS), atol=TOLERANCE)
        assert (found > 0).any(axis=1).all()
        # many texts share batches, and the result of a text does not depend on the others
        for text, row in zip(TEXTS, found, strict=True):
            np.testing.assert_array_equal(ask(client, text, size)[0], row)


def test_a_plain_checkpoint_has_the_usual_pooling(tmp_path: Path) -> None:
    # A long text loses its end. Int8 comes close.
    model = write_checkpoint(tmp_path / "plain", "BERT", "ForMaskedLM")
    modules = [mlm_transformer(tmp_path / "plain", 24), oracle().SpladePooling()]
    encoder = oracle().SparseEncoder(modules=modules)
    texts, arguments = [*TEXTS, LONG], ("--task", "sparse", "--max-tokens", "24")
    wanted = expected(encoder, texts)
    with serving(export(tmp_path / "plain", tmp_path / "bundle", *arguments)) as client:
        found = ask(client, texts, model.config.vocab_size, truncate=True)
        np.testing.assert_allclose(found, wanted, atol=TOLERANCE)
        answer = client.post("/embed_sparse", json={"inputs": LONG})
        assert answer.status_code == 422
        assert "inputs must have at most 24 tokens" in answer.json()["error"]
    int8 = export(tmp_path / "plain", tmp_path / "int8", *arguments, "--precision", "int8")
    figures = json.loads((int8 / "bundle.json").read_text())["verification"]["vectors"]["int8"]
    assert figures["strongest_overlap"] > 0.95
    assert figures["mean_dot_difference"] < 0.02
    with FillMask(int8, threads=1) as opened:
        for text, vector in zip(TEXTS, wanted, strict=False):
            largest = opened.embed_sparse(text, top_n=9).values.max()
            np.testing.assert_allclose(largest, vector.max(), rtol=0.05)


def write_router(directory: Path, plain: Path, *, in_root: bool) -> Any:
    """Write an encoder whose queries need no pass, as published by OpenSearch if `in_root`."""
    transformer = mlm_transformer(plain)
    size = transformer.model.config.vocab_size
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(len(transformer.tokenizer.get_vocab()), generator=generator)
    assert len(weight) <= size
    router = oracle().Router.for_query_document(
        query_modules=[oracle().SparseStaticEmbedding(transformer.tokenizer, weight)],
        document_modules=[transformer, oracle().SpladePooling("max", "log1p_relu")],
    )
    options = {"similarity_fn_name": "dot", "max_active_dims": 9}
    encoder = oracle().SparseEncoder(modules=[router], **options)
    encoder.save_pretrained(str(directory))
    if in_root:
        [nested] = directory.glob("document_0_*")
        file = directory / "router_config.json"
        fields = json.loads(file.read_text())
        fields["types"][""] = fields["types"].pop(nested.name)
        fields["structure"]["document"][0] = ""
        file.write_bytes(json.dumps(fields, indent=4).replace("\n", "\r\n").encode())
        for one in nested.iterdir():
            shutil.move(one, directory / one.name)
        nested.rmdir()
    return encoder


@pytest.mark.parametrize("in_root", [True, False])
def test_queries_without_a_pass(tmp_path: Path, *, in_root: bool) -> None:
    model = write_checkpoint(tmp_path / "plain", "BERT", "ForMaskedLM")
    size = model.config.vocab_size
    encoder = write_router(tmp_path / "sparse", tmp_path / "plain", in_root=in_root)
    bundle = export(tmp_path / "sparse", tmp_path / "bundle")
    with serving(bundle) as client:
        queries = ask(client, TEXTS, size, input_type="query")
        assert (queries > 0).any()
        same = expected(encoder, TEXTS, task="query")
        np.testing.assert_allclose(queries[:, : same.shape[1]], same, atol=TOLERANCE)
        documents = ask(client, TEXTS, size)
        assert ((documents > 0).sum(axis=1) == 9).all()
        np.testing.assert_allclose(
            documents, expected(encoder, TEXTS, task="document"), atol=TOLERANCE
        )
    with FillMask(bundle, threads=1) as opened:
        [vector] = opened.embed_sparse([TEXTS[0]], input_type="query")
        np.testing.assert_array_equal(vector.indices, np.flatnonzero(queries[0]))


def test_weights_of_queries_in_a_table(tmp_path: Path) -> None:
    directory = tmp_path / "plain"
    write_checkpoint(directory, "BERT", "ForMaskedLM")
    table = {"rome": 2.5, "is": 0.25, "[CLS]": 7}
    (directory / "idf.json").write_text(json.dumps(table))
    bundle = export(directory, tmp_path / "bundle", "--task", "sparse")
    with FillMask(bundle, threads=1) as opened:
        vector = opened.embed_sparse("Rome is Rome!", input_type="query")
        assert dict(zip(vector.tokens, vector.values.tolist(), strict=True)) == {
            "rome": 2.5,
            "is": 0.25,
        }
        assert len(opened.embed_sparse("Rome is Rome!").indices) > 2
