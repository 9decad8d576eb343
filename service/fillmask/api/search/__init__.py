"""Reranking and sparse vectors over HTTP, in the forms of other servers."""
