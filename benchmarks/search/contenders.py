"""Searches of a paragraph by its headline, and their figures.

Shapes: Q queries, D documents, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import Stemmer
from numpy.typing import NDArray
from scipy.sparse import csr_array

from benchmarks.search.articles import Pair
from fillmask import FillMask
from fillmask.bundles.bundle import DESCRIPTION_FILE
from fillmask_export.verification.vectors import STRONGEST, strongest
from fillmask_model.files import read_object
from fillmask_model.sparse.search import mrr_and_recall, ranks_by_score

TEXT_PAIRS = 1000  # of the comparison of int8 with fp32
TEXTS_AT_ONCE = 100


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Ranking of all documents for each query, whose own document has its index.

    Attributes:
        scores: (Q, D) scores.
        words: mean number of words of a query and of a document. None if a search has no vectors.
    """

    scores: NDArray[np.float32]
    words: tuple[float, float] | None = None

    def row(self) -> str:
        """Return the cells of a table."""
        ranks = ranks_by_score(self.scores, np.arange(len(self.scores)))
        figures = [f"{one:.3f}" for one in mrr_and_recall(ranks)]
        words = ["", ""] if self.words is None else [f"{one:.0f}" for one in self.words]
        return " | ".join(figures + words)

    def plus(self, other: Found) -> Found:
        """Return a search that adds the scores of both, each divided by its best of the query."""
        parts = [one.scores / one.scores.max(axis=1, keepdims=True) for one in (self, other)]
        return Found(parts[0] + parts[1])


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Sparse vectors.

    Attributes:
        queries: (Q, V) vectors.
        documents: (D, V) vectors.
    """

    queries: Any
    documents: Any

    @property
    def found(self) -> Found:
        """Scores by the products of the vectors."""
        scores_QD = (self.queries @ self.documents.T).toarray()
        words = [one.nnz / one.shape[0] for one in (self.queries, self.documents)]
        return Found(scores_QD, (words[0], words[1]))


def bm25(pairs: Sequence[Pair]) -> Found:
    """Search with BM25 (Robertson & Zaragoza 2009), English stop words and Snowball's stems."""
    options: dict[str, Any] = {
        "stopwords": "en",
        "stemmer": Stemmer.Stemmer("english"),
        "show_progress": False,
    }
    index = bm25s.BM25()
    documents = bm25s.tokenize([one.document for one in pairs], **options)
    index.index(documents, show_progress=False)
    queries = bm25s.tokenize([one.query for one in pairs], return_ids=False, **options)
    return Found(np.stack([index.get_scores(words) for words in queries]))


def sparse_vectors(bundle: Path, pairs: Sequence[Pair]) -> Vectors:
    """Encode all queries and documents with a bundle."""
    vocab_size = read_object(bundle / DESCRIPTION_FILE)["architecture"]["vocab_size"]
    with FillMask(bundle) as model:
        return Vectors(
            _encode(model, [one.query for one in pairs], vocab_size, "query"),
            _encode(model, [one.document for one in pairs], vocab_size, "document"),
        )


def _encode(model: FillMask, texts: Sequence[str], vocab_size: int, input_type: Any) -> Any:
    vectors = [
        vector
        for start in range(0, len(texts), TEXTS_AT_ONCE)
        for vector in model.embed_sparse(
            list(texts[start : start + TEXTS_AT_ONCE]), input_type=input_type
        )
    ]
    ends = np.cumsum([0, *(len(one.indices) for one in vectors)])
    indices = np.concatenate([one.indices for one in vectors])
    values = np.concatenate([one.values for one in vectors])
    return csr_array((values, indices, ends), shape=(len(texts), vocab_size))


def compare_int8(exact: Vectors, rounded: Vectors) -> str:
    """Describe how close the vectors of int8 are to those of fp32."""
    overlaps = []
    for row in range(TEXT_PAIRS):
        best = [strongest(one.documents[[row]].toarray()[0]) for one in (exact, rounded)]
        overlaps.append(len(np.intersect1d(best[0], best[1])) / len(best[0]))
    products, expected = (
        one.queries[:TEXT_PAIRS].multiply(one.documents[:TEXT_PAIRS]).sum(axis=1)
        for one in (rounded, exact)
    )
    some = expected > 0
    difference = (np.abs(products - expected)[some] / expected[some]).mean()
    return (
        f"int8 has {100 * np.mean(overlaps):.1f} % of fp32's {STRONGEST} strongest words of a "
        f"paragraph, and the product of a headline with its paragraph differs by "
        f"{100 * difference:.1f} % on average ({TEXT_PAIRS:,} pairs)."
    )
