"""Heads of the served graph, a file each: nodes, comparison with PyTorch and golden results."""
