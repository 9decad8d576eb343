"""Tests of benchmarks/comparison: its pure parts. The comparison itself checks the contenders."""
