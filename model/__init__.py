"""The tied masked language model in PyTorch: encoder, checkpoints, training, quantization."""
