"""One server a module; `benchmarks.race.contenders` says how each is started."""
