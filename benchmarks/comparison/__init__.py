"""The side-by-side benchmark: every contender on the same weights, texts and cores.

python -m benchmarks.comparison --help

A module and not a script: the contenders are processes of their own, and each is started as
`python -m benchmarks.comparison.servers.NAME` from the same sources.
"""
