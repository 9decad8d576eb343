"""Tests of the computations in benchmarks/comparison.

The comparison itself checks the contenders' results.
"""
