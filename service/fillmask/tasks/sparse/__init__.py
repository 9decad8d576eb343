"""Sparse vectors of texts."""
