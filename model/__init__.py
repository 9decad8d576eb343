"""Tied masked language model in PyTorch: encoder, checkpoints, training, quantization."""
