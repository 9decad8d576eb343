"""Benchmarks of the accuracy of bundles and checkpoints."""
