"""Checkpoint families: the names of their tensors and configuration fields."""
