"""Comparison of a graph with PyTorch, and the golden results of a bundle."""
