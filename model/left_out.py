"""Sentences that a corpus must not contain, because models are measured on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

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
        self._phrases: set[str] = set()
        for sentence in sentences:
            words = _WORD.findall(sentence.lower())
            if len(words) < START_WORDS:
                raise ValueError(f"{sentence!r} is too short to be left out: it takes 3 words")
            for start in range(max(1, len(words) - NGRAM_WORDS + 1)):
                phrase = words[start : start + NGRAM_WORDS]
                self._starts.add(tuple(phrase[:START_WORDS]))
                self._phrases.add(f" {' '.join(phrase)} ")

    def without(self, document: str) -> str:
        """The document without the lines that contain a sentence; empty where none is left."""
        lines = document.splitlines()
        return "\n".join(line for line in lines if not self.is_in(line))

    def is_in(self, line: str) -> bool:
        """Whether a line contains one of the sentences."""
        words = _WORD.findall(line.lower())
        # nearly every line ends here, and at the speed of C
        if self._starts.isdisjoint(zip(words, words[1:], words[2:], strict=False)):
            return False
        text = f" {' '.join(words)} "
        return any(phrase in text for phrase in self._phrases)


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
