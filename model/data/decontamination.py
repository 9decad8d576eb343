"""Sentences that a corpus must not contain, because models are measured on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from model.data.corpus import read_documents

NGRAM_WORDS = 13  # longer sentences overlap from here on (Brown et al. 2020, appendix C)
START_WORDS = 3
PROBE_COLUMNS = 3
_WORD = re.compile(r"[a-z0-9]+")


class LeftOut:
    """Finds sentences in text, whatever their case and punctuation.

    A sentence of more than 13 words is found by any 13 of them in a row.

    Args:
        sentences: at least three words each.

    Raises:
        ValueError: a sentence is shorter.
    """

    def __init__(self, sentences: Iterable[str]) -> None:
        self._starts: set[tuple[str, ...]] = set()
        self._phrases: set[tuple[str, ...]] = set()
        for sentence in sentences:
            words = _words(sentence)
            if len(words) < START_WORDS:
                raise ValueError(f"{sentence!r} is too short to be left out: it takes 3 words")
            phrases = list(_in_a_row(words, min(len(words), NGRAM_WORDS)))
            self._phrases.update(phrases)
            self._starts.update(phrase[:START_WORDS] for phrase in phrases)
        self._lengths = sorted(set(map(len, self._phrases)))

    def without(self, document: str) -> str:
        """The document without the lines that contain a sentence; empty where none is left."""
        lines = document.splitlines()
        return "\n".join(line for line in lines if not self.is_in(line))

    def is_in(self, line: str) -> bool:
        """Return whether a line contains one of the sentences."""
        words = _words(line)
        # most lines end here, and at the speed of C
        if self._starts.isdisjoint(_in_a_row(words, START_WORDS)):
            return False
        return any(
            not self._phrases.isdisjoint(_in_a_row(words, length)) for length in self._lengths
        )


def measured_sentences(path: Path) -> Iterator[str]:
    """Sentences of a file that models are measured on.

    Args:
        path: a probe where its name ends in .tsv, see `probe_sentences`; else held-out text, of
            which lines of fewer than 13 words are common property.
    """
    if path.suffix == ".tsv":
        yield from probe_sentences(path)
        return
    for document in read_documents([path]):
        for line in document.splitlines():
            if len(_words(line)) >= NGRAM_WORDS:
                yield line


def probe_sentences(path: Path) -> Iterator[str]:
    """Every sentence that a probe takes for right: its texts with each accepted answer.

    Args:
        path: a table of kind, text with `[MASK]` and accepted answers, as in `benchmarks/`.

    Raises:
        ValueError: a line has other columns, or no mask.
    """
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        columns = line.split("\t")
        if len(columns) != PROBE_COLUMNS or "[MASK]" not in columns[1]:
            raise ValueError(f"{path}: line {number} must have a kind, a text with [MASK], answers")
        for answer in columns[2].split():
            yield columns[1].replace("[MASK]", answer)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _in_a_row(words: list[str], count: int) -> Iterator[tuple[str, ...]]:
    """Every `count` neighbouring words."""
    return zip(*(words[start:] for start in range(count)), strict=False)
