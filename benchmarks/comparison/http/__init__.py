"""Comparison over HTTP: contenders, load, correctness, memory and installed sizes."""
