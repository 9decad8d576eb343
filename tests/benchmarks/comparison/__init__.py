"""Tests of the pure functions in benchmarks/comparison.

The comparison itself checks the contenders' results.
"""
