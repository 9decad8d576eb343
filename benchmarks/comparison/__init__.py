"""Benchmark of the contenders (fillmask and other servers) on the same weights, texts and CPUs.

    python -m benchmarks.comparison --help

Each contender is a separate process of `python -m benchmarks.comparison.servers.NAME`.
"""
