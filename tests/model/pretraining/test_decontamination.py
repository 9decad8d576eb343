"""Sentences of the benchmarks that a corpus must not contain."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from fillmask_model.commands import main
from fillmask_model.pretraining.decontamination import (
    SentenceFilter,
    evaluation_sentences,
    probe_sentences,
)

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('He said: "We eat soup -- with a SPOON!" and left.', True),
        ("We eat soup with a spoonful of salt.", False),
        ("We eat soup with a fork.", False),
        ("Snowe eat soup with a spoon.", False),
        ("", False),
        (f"zero {LONG.rsplit(maxsplit=2)[0]}", True),
        (f"{LONG.split(maxsplit=2)[2]} sixteen", True),
        (LONG.rsplit(maxsplit=3)[0], False),
    ],
)
def test_sentences_are_found_by_their_words(line: str, *, found: bool) -> None:
    # Short sentences match entirely, long sentences by any 13 consecutive words.
    assert SentenceFilter(["We eat soup with a spoon.", LONG]).matches(line) is found


def test_lines_with_a_sentence_are_dropped() -> None:
    # A document may lose all its lines.
    measured = SentenceFilter(["time is money"])
    assert measured.remove_from("Hello.\nTime is money, he said.\nBye.") == "Hello.\nBye."
    assert measured.remove_from("Time is money.") == ""


def test_sentences_of_two_words_are_rejected() -> None:
    # Sentences of two words match too much other text.
    with pytest.raises(ValueError, match=r"must have at least 3 words \(got 'Dogs bark\.'\)"):
        SentenceFilter(["Dogs bark."])


def test_a_probe_gives_its_texts_with_each_answer(tmp_path: Path) -> None:
    # The probe has one sentence per accepted answer.
    probe = tmp_path / "probe.tsv"
    probe.write_text("use\tWe sweep with a [MASK].\tbroom brush\n")
    assert list(probe_sentences(probe)) == ["We sweep with a broom.", "We sweep with a brush."]


@pytest.mark.parametrize("line", ["use\tno columns", "use\tno mask\tbroom"])
def test_a_file_that_is_no_probe_is_rejected(tmp_path: Path, line: str) -> None:
    # The error names the file and the line.
    probe = tmp_path / "probe.tsv"
    probe.write_text(f"use\tA [MASK].\tb\n{line}\n")
    with pytest.raises(ValueError, match=r"probe\.tsv, line 2 must have the columns"):
        list(probe_sentences(probe))


@pytest.mark.parametrize("probe", ["cloze_probe", "plain_facts"])
def test_every_sentence_measured_on_can_be_left_out(probe: str) -> None:
    # The test reads the real probes of the benchmarks.
    path = Path(__file__).parents[3] / "benchmarks" / "quality" / f"{probe}.tsv"
    sentences = list(probe_sentences(path))
    measured = SentenceFilter(sentences)
    assert len(sentences) >= 60
    assert all(map(measured.matches, sentences))


def test_held_out_text_is_found_by_thirteen_words(tmp_path: Path) -> None:
    # Lines of fewer than 13 words do not count.
    held_out = tmp_path / "held_out.txt"
    held_out.write_text(f"Time is money.\n{LONG}\n\nYes.\n")
    measured = SentenceFilter(evaluation_sentences(held_out))
    assert measured.matches(LONG.split(maxsplit=1)[1].upper())
    assert not measured.matches("Time is money.")
    assert not measured.matches(LONG.rsplit(maxsplit=3)[0])


def test_a_mixture_leaves_out_what_is_measured(tmp_path: Path) -> None:
    # The command also removes documents without remaining lines.
    texts = tmp_path / "texts.txt"
    texts.write_text(f"Time is money.\n\nKeep this.\nTime is money, they say.\nAs {LONG}.\n")
    (tmp_path / "held_out.txt").write_text(LONG)
    (tmp_path / "more.txt").write_text("Time is money.\nKeep this too.")
    for name, source in (("titles.tsv.xz", "tatoeba"), ("more.tsv.xz", "generics")):
        rows = f"{source}\ttitle\tauthor\t1\n" * (2 if source == "tatoeba" else 1)
        (tmp_path / name).write_bytes(lzma.compress(rows.encode()))
    mixture = {"seed": 1, "shares": {"tatoeba": 1, "generics": 2}, "only_authors": {}}
    (tmp_path / "mixture.json").write_text(json.dumps(mixture))
    (tmp_path / "probe.tsv").write_text("idiom\tTime is [MASK].\tmoney\n")
    output = tmp_path / "mixed.txt"
    status = main(
        [
            *("mix", str(texts), str(tmp_path / "more.txt")),
            *("--titles", str(tmp_path / "titles.tsv.xz"), str(tmp_path / "more.tsv.xz")),
            *("--mixture", str(tmp_path / "mixture.json"), "--output", str(output)),
            *("--leave-out", str(tmp_path / "probe.tsv"), str(tmp_path / "held_out.txt")),
        ]
    )
    assert status == 0
    documents = output.read_text().removesuffix("\n").split("\n\n")
    assert sorted(documents) == ["Keep this too.", "Keep this too.", "Keep this."]
