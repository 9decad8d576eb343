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
from fillmask_model.fine_tuning.loop import autocast
from fillmask_model.fine_tuning.tokens import TokenizedTexts, sorted_batches
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
    found = ranks <= CUTOFF
    return SearchMetrics(
        mrr_at_10=float((found / ranks).mean()),
        recall_at_10=float(found.mean()),
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
    """Return the rank (Q,) of each wanted document, from 1.

    Of documents with the same score, the wanted one is the last.
    """
    ranks = []
    for start in range(0, len(wanted_Q), QUERIES_AT_ONCE):
        part = slice(start, start + QUERIES_AT_ONCE)
        scores_QD = (queries_QV[part] @ documents_DV.T).toarray()
        own_Q1 = np.take_along_axis(scores_QD, wanted_Q[part, None], axis=1)
        ranks.append((scores_QD >= own_Q1).sum(axis=1))
    return np.concatenate(ranks)
