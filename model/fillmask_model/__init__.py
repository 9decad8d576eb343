"""Tied masked language model in PyTorch, with checkpoints, training and quantization."""

__distribution__ = "fillmask"  # service/fillmask/startup/entry_points.py reads this line
