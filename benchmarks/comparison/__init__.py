"""Benchmark of the contenders (fillmask and other servers) on the same weights, texts and CPUs.

    python -m benchmarks.comparison --help

Each contender runs in a separate process. `benchmarks.comparison.servers` contains the servers
other than fillmask.
"""
