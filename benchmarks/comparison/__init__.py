"""Side-by-side benchmark of all contenders on the same weights, texts and CPUs.

    python -m benchmarks.comparison --help

Each contender is a separate process of `python -m benchmarks.comparison.servers.NAME`.
"""
