"""One server a module; `benchmarks.comparison.contenders` says how each is started."""
