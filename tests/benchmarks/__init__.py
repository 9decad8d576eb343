"""Tests of the computations in benchmarks/, without measurements."""
