"""Tied masked language model in PyTorch, with checkpoints, training and quantization."""
