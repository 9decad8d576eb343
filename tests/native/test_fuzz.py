"""A short run of tests/native/fuzz.py."""

from __future__ import annotations

from tests.native.fuzz import Fuzzer


def test_random_models_are_refused_or_right() -> None:
    fuzzer = Fuzzer(seed=0)
    for _ in range(300):
        fuzzer.step()
    for operator in ("Int8Linear", "PackedAttention"):
        results = ("compared", "refused at load", "refused at run", "accepted after changes")
        assert all(fuzzer.counts[f"{operator} {result}"] >= 5 for result in results)
