"""Tests of benchmarks/race/: its pure parts. The contenders are checked by the race itself."""
