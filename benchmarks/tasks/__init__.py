"""Speed of reranking and of masked marginals beside transformers, in one run."""
