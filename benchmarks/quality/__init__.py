"""Accuracy of bundles and checkpoints."""
