"""Comparison of fine-tuning with training from scratch."""
