"""Search of documents by sparse vectors, and its metrics.

Shapes: Q queries, D documents, V vocabulary.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.encoder.sparse import SparsePooling
from fillmask_model.fine_tuning.tokens import TokenizedTexts, sorted_batches
from fillmask_model.optimization import autocast
from fillmask_model.sparse.pairs import PairTokens
from fillmask_model.sparse.pooling import embed

BATCH_ROWS, QUERIES_AT_ONCE = 16, 256
CUTOFF = 10  # ranks after this one count as not found


@dataclass(frozen=True, slots=True)
class SearchMetrics:
    """Metrics of a search for the document of each query among all documents.

    Attributes:
        mrr_at_10: mean of 1 / rank, or 0 for ranks above 10.
        recall_at_10: share of queries whose document has at most rank 10.
        query_words, document_words: mean number of words with a weight.
    """

    mrr_at_10: float
    recall_at_10: float
    query_words: float
    document_words: float

    def to_dict(self) -> dict[str, float]:
        """Return all metrics by name."""
        return asdict(self)


def evaluate_search(model: TiedEncoder, pooling: SparsePooling, pairs: PairTokens) -> SearchMetrics:
    """Search the document of each query among the documents of all pairs.

    Args:
        model: encoder with a masked-language-model head, on any device. The function sets it to
            evaluation mode.
    """
    model.eval()
    queries_QV, documents_DV = (
        encode(model, pooling, texts) for texts in (pairs.queries, pairs.documents)
    )
    _, first = np.unique(pairs.document_ids, return_index=True)  # each text once
    ranks = ranks_of(queries_QV, documents_DV[first], pairs.document_ids)
    mrr, recall = mrr_and_recall(ranks)
    return SearchMetrics(
        mrr_at_10=mrr,
        recall_at_10=recall,
        query_words=queries_QV.nnz / len(pairs),
        document_words=documents_DV.nnz / len(pairs),
    )


@torch.inference_mode()
def encode(model: TiedEncoder, pooling: SparsePooling, texts: TokenizedTexts) -> csr_array:
    """Return the vectors (N, V) of texts."""
    rows, parts = [], []
    for batch in sorted_batches(texts, BATCH_ROWS):
        with autocast(model.output_projection().device):
            parts.append(csr_array(embed(model, pooling, batch).cpu().numpy()))
        rows.append(batch.rows)
    return vstack(parts, format="csr")[np.argsort(np.concatenate(rows))]


def ranks_of(
    queries_QV: csr_array, documents_DV: csr_array, wanted_Q: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the rank (Q,) of each wanted document by the products of the vectors, from 1."""
    ranks = []
    for start in range(0, len(wanted_Q), QUERIES_AT_ONCE):
        part = slice(start, start + QUERIES_AT_ONCE)
        scores_QD = (queries_QV[part] @ documents_DV.T).toarray()
        ranks.append(ranks_by_score(scores_QD, wanted_Q[part]))
    return np.concatenate(ranks)


def ranks_by_score(
    scores_QD: NDArray[np.float32], wanted_Q: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the rank (Q,) of each wanted document, from 1.

    Of documents with the same score, the wanted one is the last.
    """
    own_Q1 = np.take_along_axis(scores_QD, wanted_Q[:, None], axis=1)
    ranks: NDArray[np.int64] = (scores_QD >= own_Q1).sum(axis=1)
    return ranks


def mrr_and_recall(ranks_Q: NDArray[np.int64]) -> tuple[float, float]:
    """Return the mean of 1 / rank and the share of ranks up to 10. Later ranks count as 0."""
    found = ranks_Q <= CUTOFF
    return float((found / ranks_Q).mean()), float(found.mean())
