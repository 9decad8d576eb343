"""Training of tiny sparse encoders: batches of pairs, the loss, its gradients and the search."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from fillmask_model.encoder.sparse import SparsePooling
from fillmask_model.fine_tuning.config import SparseConfig
from fillmask_model.fine_tuning.loop import Epoch, fine_tune
from fillmask_model.fine_tuning.pairs import shuffled_pairs
from fillmask_model.fine_tuning.pooling import embed
from fillmask_model.fine_tuning.search import encode, evaluate_search, ranks_of
from fillmask_model.fine_tuning.sparse import contrastive_loss, flops, lower_bias
from fillmask_model.fine_tuning.tokens import TokenizedTexts, make_batch
from tests.model.fine_tuning.samples import (
    only,
    pairs_of,
    sparse_search,
    tiny_encoder,
    translations,
)
from tests.model.samples import random_encoder, small_config


def test_the_penalty_removes_words() -> None:
    words = []
    for penalty in (0.0, 0.1):
        config = SparseConfig(
            epochs=6, learning_rate=2e-2, query_penalty=penalty, document_penalty=penalty
        )
        epochs: list[Epoch] = []
        assert fine_tune(sparse_search(config), config, epochs.append)
        words.append(epochs[-1].metrics["document_words"])
        assert [(epoch.epoch, epoch.steps) for epoch in epochs] == [(n, 4 * n) for n in range(1, 7)]
        if not penalty:
            assert epochs[-1].metrics["mrr_at_10"] > 1.5 * epochs[0].metrics["mrr_at_10"]
    assert words[1] < 0.7 * words[0]


def test_the_bias_falls_once() -> None:
    search = sparse_search(SparseConfig())
    bias = search.model.get_parameter("head_bias").detach()
    lowered = bias.clone()
    lower_bias(search.model, search.training.documents)
    torch.testing.assert_close(bias, lowered)
    bias.sub_(1)  # as in an encoder that is sparse already
    lower_bias(search.model, search.training.documents)
    torch.testing.assert_close(bias, lowered - 1)


def test_the_loss_is_the_cross_entropy_of_the_own_document() -> None:
    queries, documents = np.random.default_rng(0).random((2, 4, 7))
    equal = np.eye(4, dtype=bool)
    equal[0, 2] = equal[2, 0] = True
    expected = 0.0
    for row in range(4):
        scores = documents @ queries[row]
        others = [math.exp(scores[c]) for c in range(4) if c == row or not equal[row, c]]
        expected += (math.log(sum(others)) - scores[row]) / 4
    found = contrastive_loss(*map(torch.from_numpy, (queries, documents, equal)))
    assert float(found) == pytest.approx(expected, rel=1e-9)
    assert float(flops(torch.from_numpy(queries))) == pytest.approx(
        sum(queries[:, word].mean() ** 2 for word in range(7)), rel=1e-9
    )


def test_the_objective_weighs_the_penalties() -> None:
    # At step 1 of 24 with a rise over 12, the penalties have 1 / 144 of their weight.
    fields = {"epochs": 6, "batch_rows": 32, "penalty_share": 0.5}
    losses = []
    for query, document in ((0.0, 0.0), (2.0, 3.0)):
        config = SparseConfig(**fields, query_penalty=query, document_penalty=document)  # type: ignore[arg-type]  # numbers of each field
        search = sparse_search(config)
        batch = next(search.batches(1))
        losses.append(search.loss(batch, 1).item())
    words = [embed(search.model, one) for one in (batch.queries, batch.documents)]
    penalty = 2 * flops(words[0]).item() + 3 * flops(words[1]).item()
    assert losses[1] - losses[0] == pytest.approx(penalty / 144, rel=0.05)  # may use bfloat16


@pytest.mark.slow  # the import takes seconds
def test_the_losses_are_those_of_sentence_transformers() -> None:
    from sentence_transformers.sparse_encoder import losses  # noqa: PLC0415

    queries, documents = torch.rand((2, 5, 9), generator=torch.Generator().manual_seed(0))
    oracle = losses.SparseMultipleNegativesRankingLoss(torch.nn.Identity())
    expected = oracle.compute_loss_from_embeddings([queries, documents], torch.empty(0))
    found = contrastive_loss(queries, documents, torch.eye(5, dtype=torch.bool))
    torch.testing.assert_close(found, expected)
    penalty = losses.FlopsLoss(torch.nn.Identity()).compute_loss_from_embeddings(documents)
    torch.testing.assert_close(flops(documents), penalty)


@pytest.mark.parametrize("changes", [{}, {"tied": False}, {"head_bias": False}])
def test_weights_and_gradients_are_those_of_all_logits(changes: dict[str, bool]) -> None:
    model = random_encoder(small_config(**changes)).double()
    generator = np.random.default_rng(0)
    ids = [generator.integers(0, 61, length).astype(np.int32) for length in (5, 3, 8)]
    texts = TokenizedTexts(ids, None, pad=0, max_tokens=16)
    weights_NV = embed(model, make_batch(texts, np.arange(len(ids))))
    factors_NV = torch.from_numpy(generator.normal(size=weights_NV.shape))
    torch.autograd.backward((weights_NV * factors_NV).sum())
    found = {
        name: one.grad.clone() for name, one in model.named_parameters() if one.grad is not None
    }

    model.zero_grad()
    expected = []
    for one in ids:  # each text alone, without padding
        hidden_TE = model.hidden(torch.from_numpy(one.astype(np.int64))[None])[0]
        expected.append(SparsePooling()(model.logits(hidden_TE)))
    expected_NV = torch.stack(expected)
    torch.testing.assert_close(weights_NV, expected_NV.to(weights_NV), rtol=1e-6, atol=1e-6)
    torch.autograd.backward((expected_NV * factors_NV).sum())
    wanted = {name: one.grad for name, one in model.named_parameters() if one.grad is not None}
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-5, atol=1e-6, msg=name)


def test_an_epoch_has_each_pair_at_most_once_in_another_order() -> None:
    pairs = pairs_of(translations(70))
    first, second, again = (
        [row for one in shuffled_pairs(pairs, 32, 0, epoch) for row in one.queries.rows.tolist()]
        for epoch in (1, 2, 1)
    )
    assert len(first) == len(set(first)) == 64
    assert first == again != second


def test_pairs_with_a_common_text_are_no_wrong_answers() -> None:
    rows = translations(4)
    rows[2]["document"], rows[3]["query"] = rows[0]["document"], rows[1]["query"]
    [batch] = shuffled_pairs(pairs_of(rows), 4, 0, 1)
    places = batch.queries.rows.tolist()
    for row, first in enumerate(places):
        for column, second in enumerate(places):
            same = first == second or {first, second} in ({0, 2}, {1, 3})
            assert batch.equal[row, column] == same
    assert np.array_equal(batch.queries.rows, batch.documents.rows)


def test_ranks_count_documents_with_at_least_the_same_score() -> None:
    queries = csr_array(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    documents = csr_array(np.array([[0.5, 0.0], [2.0, 1.0], [1.0, 1.0]]))
    assert ranks_of(queries, documents, np.array([0, 1, 2])).tolist() == [3, 2, 3]


def test_metrics_follow_from_the_ranks() -> None:
    model = tiny_encoder()
    rows = translations(280, seed=2)  # more than are ranked at once
    rows[7]["document"] = rows[3]["document"]
    pairs = pairs_of(rows)
    metrics = evaluate_search(model, pairs)
    queries, documents = (encode(model, one).toarray() for one in (pairs.queries, pairs.documents))
    unique = np.unique(pairs.document_ids, return_index=True)[1]
    assert len(unique) < len(rows)
    scores = queries @ documents[unique].T
    ranks = np.array(
        [(one >= one[own]).sum() for one, own in zip(scores, pairs.document_ids, strict=True)]
    )
    # sums of float32 numbers in another order may swap two ranks
    assert metrics["mrr_at_10"] == pytest.approx(np.mean((ranks <= 10) / ranks), abs=0.01)
    assert metrics["recall_at_10"] == pytest.approx(np.mean(ranks <= 10), abs=0.01)
    assert metrics["query_words"] == pytest.approx((queries > 0).sum(1).mean())
    assert metrics["document_words"] == pytest.approx((documents > 0).sum(1).mean())
    for row in (0, 17, 279):  # whatever else is in the batch
        alone = encode(model, only(pairs.queries, row)).toarray()
        np.testing.assert_allclose(queries[row], alone[0], atol=0.02)  # may use bfloat16
