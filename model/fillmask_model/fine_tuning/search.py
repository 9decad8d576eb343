"""Search by sparse vectors. Shapes: Q queries, D documents, N texts, V vocabulary."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from fillmask_model.encoder.encoder import TiedEncoder
from fillmask_model.fine_tuning.pairs import Pairs
from fillmask_model.fine_tuning.pooling import embed
from fillmask_model.fine_tuning.tokens import TokenizedTexts, sorted_batches
from fillmask_model.optimization import autocast

BATCH_ROWS, QUERIES_AT_ONCE = 16, 256
CUTOFF = 10  # ranks after this one count as not found


def evaluate_search(model: TiedEncoder, pairs: Pairs) -> dict[str, float]:
    """Search the document of each query among those of all pairs, in evaluation mode.

    Returns:
        The MRR, the recall, and the mean numbers of words with a weight.
    """
    model.eval()
    queries_QV, documents_DV = encode(model, pairs.queries), encode(model, pairs.documents)
    _, first = np.unique(pairs.document_ids, return_index=True)  # each text once
    mrr, recall = mrr_and_recall(ranks_of(queries_QV, documents_DV[first], pairs.document_ids))
    return {
        "mrr_at_10": mrr,
        "recall_at_10": recall,
        "query_words": queries_QV.nnz / len(pairs),
        "document_words": documents_DV.nnz / len(pairs),
    }


@torch.inference_mode()
def encode(model: TiedEncoder, texts: TokenizedTexts) -> csr_array:
    """Return the vectors (N, V) of texts."""
    rows, parts = [], []
    for batch in sorted_batches(texts, BATCH_ROWS):
        with autocast(model.output_projection().device):
            parts.append(csr_array(embed(model, batch).cpu().numpy()))
        rows.append(batch.rows)
    return vstack(parts, format="csr")[np.argsort(np.concatenate(rows))]


def ranks_of(
    queries_QV: csr_array, documents_DV: csr_array, wanted_Q: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the rank (Q,) of each wanted document by the products of the vectors, from 1.

    Of documents with the same score, the wanted one is the last.
    """
    ranks = []
    for start in range(0, len(wanted_Q), QUERIES_AT_ONCE):
        part = slice(start, start + QUERIES_AT_ONCE)
        scores_QD = (queries_QV[part] @ documents_DV.T).toarray()
        own_Q1 = np.take_along_axis(scores_QD, wanted_Q[part, None], axis=1)
        ranks.append((scores_QD >= own_Q1).sum(axis=1))
    return np.concatenate(ranks)


def mrr_and_recall(ranks_Q: NDArray[np.int64]) -> tuple[float, float]:
    """Return the mean of 1 / rank and the share of ranks up to 10. Later ranks count as 0."""
    found = ranks_Q <= CUTOFF
    return float((found / ranks_Q).mean()), float(found.mean())
