"""Decontamination of a training corpus by removal of evaluation sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from fillmask_model.documents import read_documents

NGRAM_WORDS = 13  # number of consecutive words that make a match (Brown et al. 2020, appendix C)
START_WORDS = 3
PROBE_COLUMNS = 3
_WORD = re.compile(r"[a-z0-9]+")


class SentenceFilter:
    """Filter of lines that contain given sentences.

    The filter ignores case and punctuation. A line with any 13 consecutive words of a longer
    sentence also matches.

    Args:
        sentences: sentences of at least three words.

    Raises:
        ValueError: a sentence has fewer than three words.
    """

    def __init__(self, sentences: Iterable[str]) -> None:
        self._starts: set[tuple[str, ...]] = set()
        self._phrases: set[tuple[str, ...]] = set()
        for sentence in sentences:
            words = _words(sentence)
            if len(words) < START_WORDS:
                raise ValueError(
                    f"sentences must have at least {START_WORDS} words (got {sentence!r})"
                )
            phrases = list(_ngrams(words, min(len(words), NGRAM_WORDS)))
            self._phrases.update(phrases)
            self._starts.update(phrase[:START_WORDS] for phrase in phrases)
        self._lengths = sorted(set(map(len, self._phrases)))

    def remove_from(self, document: str) -> str:
        """Return the document without its matching lines."""
        lines = document.splitlines()
        return "\n".join(line for line in lines if not self.matches(line))

    def matches(self, line: str) -> bool:
        """Return whether a line contains one of the sentences."""
        words = _words(line)
        # this fast check in C rejects most lines
        if self._starts.isdisjoint(_ngrams(words, START_WORDS)):
            return False
        return any(not self._phrases.isdisjoint(_ngrams(words, length)) for length in self._lengths)


def evaluation_sentences(path: Path) -> Iterator[str]:
    """Yield the sentences of a probe or the lines of a held-out text.

    Args:
        path: probe with the suffix .tsv (see `probe_sentences`), or held-out text. The result
            excludes lines of held-out text with fewer than 13 words, which are too common.
    """
    if path.suffix == ".tsv":
        yield from probe_sentences(path)
        return
    for document in read_documents([path]):
        for line in document.splitlines():
            if len(_words(line)) >= NGRAM_WORDS:
                yield line


def probe_sentences(path: Path) -> Iterator[str]:
    """Yield each text of a probe once per accepted answer, with the answer in place of the mask.

    Args:
        path: table with the columns kind, text with `[MASK]` and accepted answers, as in
            `benchmarks/`.

    Raises:
        ValueError: a line does not have three columns, or has no mask.
    """
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        columns = line.split("\t")
        if len(columns) != PROBE_COLUMNS or "[MASK]" not in columns[1]:
            raise ValueError(
                f"{path}, line {number} must have the columns kind, text with [MASK] and answers "
                f"(got {line!r})"
            )
        for answer in columns[2].split():
            yield columns[1].replace("[MASK]", answer)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _ngrams(words: list[str], count: int) -> Iterator[tuple[str, ...]]:
    """Yield every run of `count` consecutive words."""
    return zip(*(words[start:] for start in range(count)), strict=False)
