"""The phases of the built-in model's training, and the mixtures that they read."""

from __future__ import annotations

import argparse
import lzma
from collections import Counter
from pathlib import Path

import pytest

from fillmask_model.hyperparameters import from_flags
from fillmask_model.pretraining.commands import add_commands
from fillmask_model.pretraining.config import TrainConfig
from train_default import AUTHORS, PHASES, SHARES, mixed_documents, pretraining, write_mixture

CORPUS, RUN = Path("corpus"), Path("run")


def parsed(phase: int, run: Path = RUN) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers())
    return parser.parse_args(pretraining(CORPUS, run, phase))


def test_each_phase_has_valid_options_and_starts_from_the_previous_one(tmp_path: Path) -> None:
    # A stopped phase continues.
    assert (parsed(1).init / "config.json").is_file()
    for phase in range(1, len(PHASES) + 1):
        options = parsed(phase)
        from_flags(TrainConfig, options)
        assert options.texts == [RUN / f"corpus_{PHASES[phase - 1][0]}.txt"]
        assert not options.resume
        if phase > 1:
            assert options.init == parsed(phase - 1).output
    (tmp_path / "phase_3").mkdir()
    (tmp_path / "phase_3" / "train_state.pt").touch()
    assert [parsed(phase, tmp_path).resume for phase in (2, 3, 4)] == [False, True, False]


@pytest.mark.parametrize("mixture", [1, 2, 3, 4])
def test_a_mixture_has_the_shares_of_its_sources(mixture: int) -> None:
    corpus = [(source, AUTHORS[0]) for source in SHARES for _ in range(1000)]
    taken = Counter(corpus[number][0] for number in mixed_documents(corpus, mixture))
    # five standard deviations of 1,000 draws
    expected = {source: 1000 * shares[mixture - 1] for source, shares in SHARES.items()}
    assert taken == pytest.approx(expected, abs=80)


def test_authors_and_seeds_decide_the_documents() -> None:
    corpus = [("gutenberg", f"{AUTHORS[1]}, 1844-1912"), ("wiki", "")] * 500
    first = list(mixed_documents(corpus, 1))
    assert first == list(mixed_documents(corpus, 1)) != sorted(first)
    # mixtures 1 and 3 have the same shares
    assert set(first) != set(mixed_documents(corpus, 3))
    # documents that are left out change no other choice
    left_out = [number for number in first if number % 4 == 0]
    for number in left_out:
        corpus[number] = ("gutenberg", "Nobody")
    assert set(mixed_documents(corpus, 1)) == set(first) - set(left_out)
    assert not list(mixed_documents([("unknown", AUTHORS[1])] * 9, 1))


def test_a_mixture_is_written_as_documents(tmp_path: Path) -> None:
    (tmp_path / "train-00.txt.xz").write_bytes(lzma.compress(b"one\nmore\n\ntwo"))
    table = b"tatoeba\ttitle\tauthor\t8\ncv\ttitle\tauthor\t3\n"
    (tmp_path / "train-titles.tsv.xz").write_bytes(lzma.compress(table))
    write_mixture(tmp_path, 1, tmp_path / "mixed.txt")
    written = (tmp_path / "mixed.txt").read_text().rstrip("\n").split("\n\n")
    assert sorted(written) == ["one\nmore", "one\nmore", "two"]
