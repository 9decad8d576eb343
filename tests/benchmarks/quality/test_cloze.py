"""Cloze probe and plain facts of the quality benchmark."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.quality import cloze
from benchmarks.quality.cloze import PROBE, Tally
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_model.data.decontamination import SentenceFilter, probe_sentences

FACTS = PROBE.with_name("plain_facts.tsv")


def test_each_of_six_kinds_has_ten_facts_that_the_built_in_model_could_tell() -> None:
    tokenizer = Tokenizer.from_bundle(read_bundle(default_bundle_path()))
    kinds: Counter[str] = Counter()
    for line in FACTS.read_text(encoding="utf-8").splitlines():
        kind, text, answers = line.split("\t")
        kinds[kind] += 1
        assert text.count("[MASK]") == 1, text
        for answer in answers.split():
            ids = tokenizer.encode(f"[MASK] {answer}").input_ids
            assert len(ids) == 4, answer  # [CLS] [MASK] word [SEP]
    kinds_in_order = ["colour", "place", "part", "use", "sound", "opposite"]
    assert list(kinds.items()) == [(kind, 10) for kind in kinds_in_order]


def test_no_fact_is_a_prompt_of_the_cloze_probe() -> None:
    prompts = SentenceFilter(probe_sentences(PROBE))
    facts = list(probe_sentences(FACTS))
    assert [fact for fact in facts if prompts.matches(fact)] == []


def test_rates_and_misses_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The output is a table by kind, followed by the missed sentences.
    monkeypatch.setattr("sys.argv", ["cloze", "some/bundle"])
    missed = "We eat soup with a [MASK]. -> lot"
    tallies = {"use": Tally(2, 1, 1, [missed])}
    monkeypatch.setattr(cloze, "probe", lambda *_: tallies)
    cloze.main()
    said = capsys.readouterr().out
    assert "| use | 2 | 50 % | 50 % |" in said
    assert said.endswith(f"missed:\n{missed}\n")
