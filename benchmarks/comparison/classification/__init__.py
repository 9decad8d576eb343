"""Benchmark of /classify against transformers' pipeline, on the same weights, texts and CPUs."""
