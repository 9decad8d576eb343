"""Benchmarks of speed, memory and behaviour under load."""
