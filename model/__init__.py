"""The tied masked-language-model encoder in PyTorch: reference, training, checkpoints."""
