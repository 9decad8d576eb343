"""Lengths and order of the comparison's texts."""

from __future__ import annotations

import statistics

from benchmarks.comparison.choose_texts import (
    MAX_TOKENS,
    MIN_TOKENS,
    choose,
    interleave,
    wanted_lengths,
)


def test_wanted_lengths_are_log_normal_within_the_limits() -> None:
    # Lengths are from 5 to 200 tokens, with a mean from 24 to 30 and a median below the mean.
    lengths = wanted_lengths(200)
    assert lengths == sorted(lengths)
    assert (len(lengths), lengths[0], lengths[-1]) == (200, MIN_TOKENS, MAX_TOKENS)
    assert 24 <= statistics.mean(lengths) <= 30
    assert statistics.median(lengths) < 0.8 * statistics.mean(lengths)


def test_each_text_is_chosen_once_and_by_its_length() -> None:
    lengths = {f"text of {n}": n for n in range(1, 100)}
    chosen = choose(lengths, [7, 50, 99, 12], seed=0)
    assert chosen == ["text of 99", "text of 50", "text of 12", "text of 7"]


def test_the_nearest_is_taken_where_none_fits() -> None:
    lengths = {"short": 5, "middle": 20, "long": 90}
    assert choose(lengths, [200, 80, 6], seed=0) == ["long", "middle", "short"]


def test_choice_is_the_same_for_a_seed_and_differs_between_seeds() -> None:
    lengths = {f"{n}": 10 for n in range(50)}
    first = choose(lengths, [10] * 5, seed=1)
    assert first == choose(lengths, [10] * 5, seed=1)
    assert first != choose(lengths, [10] * 5, seed=2)


def test_any_stretch_of_the_order_has_all_lengths() -> None:
    # The mean length of any 88 consecutive texts is within 8 % of the mean length of all texts.
    lengths = sorted(wanted_lengths(200), reverse=True)
    order = [int(text) for text in interleave([str(length) for length in lengths])]
    assert sorted(order, reverse=True) == lengths
    whole = statistics.mean(order)
    stretches = [(order * 2)[start : start + 88] for start in range(200)]
    assert max(abs(statistics.mean(s) / whole - 1) for s in stretches) < 0.08
