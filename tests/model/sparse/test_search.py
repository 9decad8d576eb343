"""Ranks and metrics of a search, compared with a search by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from fillmask_model.encoder.sparse import SparsePooling
from fillmask_model.sparse.search import encode, evaluate_search, ranks_of
from tests.model.sparse.samples import encoder_for, pairs_of, tokens_of, word_tokenizer


def test_ranks_count_documents_with_at_least_the_same_score() -> None:
    queries = csr_array(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    documents = csr_array(np.array([[0.5, 0.0], [2.0, 1.0], [1.0, 1.0]]))
    assert ranks_of(queries, documents, np.array([0, 1, 2])).tolist() == [3, 2, 3]


def test_metrics_follow_from_the_ranks() -> None:
    tokenizer = word_tokenizer()
    model = encoder_for(tokenizer)
    pairs = tokens_of(pairs_of(300, seed=2), tokenizer)  # some documents occur twice
    metrics = evaluate_search(model, SparsePooling(), pairs)
    queries, documents = (
        encode(model, SparsePooling(), one).toarray() for one in (pairs.queries, pairs.documents)
    )
    unique = np.unique(pairs.document_ids, return_index=True)[1]
    assert len(unique) < 300
    reciprocals = []
    for query, wanted in zip(queries, pairs.document_ids, strict=True):
        scores = documents[unique] @ query
        rank = sum(score >= scores[wanted] for score in scores)
        reciprocals.append(1 / rank if rank <= 10 else 0)
    # sums of float32 numbers in another order may swap two ranks
    assert metrics.mrr_at_10 == pytest.approx(np.mean(reciprocals), abs=0.01)
    assert metrics.query_words == pytest.approx((queries > 0).sum(1).mean())
    assert metrics.document_words == pytest.approx((documents > 0).sum(1).mean())


def test_vectors_keep_the_order_of_the_texts() -> None:
    tokenizer = word_tokenizer()
    model = encoder_for(tokenizer)
    texts = tokens_of(pairs_of(40), tokenizer).queries
    together = encode(model, SparsePooling(), texts).toarray()
    for row in (0, 17, 39):
        alone = encode(model, SparsePooling(), texts.select(np.array([row]))).toarray()
        np.testing.assert_allclose(together[row], alone[0], atol=0.02)  # may use bfloat16
