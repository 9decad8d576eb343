"""Tests of benchmarks/: what is computed there, not what is measured."""
