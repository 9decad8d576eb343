"""Servers of the contenders, which `benchmarks.comparison.contenders` starts."""
