"""Selection of the texts in texts.txt from a corpus.

    python -m benchmarks.comparison.choose_texts CORPUS TITLES TOKENIZER_JSON > texts.txt

CORPUS has one paragraph per line and a blank line between documents. TITLES is a table whose first
column is the source of each document. The licences of the selected sources (TEXTS.md) require at
most an attribution.
"""

from __future__ import annotations

import bisect
import math
import random
import statistics
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tokenizers import Tokenizer

SOURCES = frozenset({"cv", "factbook", "gov", "medquad", "nltk", "tatoeba"})
TEXTS = 200
MIN_TOKENS, MAX_TOKENS = 5, 200
# parameters of a log-normal distribution with a mean of about 26 tokens
MEDIAN_TOKENS, SIGMA = 19, 0.8
SEED = 0


def wanted_lengths(count: int) -> list[int]:
    """Return `count` ascending lengths in tokens, at even quantiles of a log-normal distribution.

    The first and the last length are the allowed minimum and maximum.
    """
    bell = statistics.NormalDist(math.log(MEDIAN_TOKENS), SIGMA)
    inner = [math.exp(bell.inv_cdf(i / (count - 1))) for i in range(1, count - 1)]
    clipped = [min(max(round(length), MIN_TOKENS), MAX_TOKENS) for length in inner]
    return [MIN_TOKENS, *clipped, MAX_TOKENS]


def choose(lengths: Mapping[str, int], wanted: list[int], seed: int) -> list[str]:
    """Choose the text with the nearest length for each wanted length.

    The result contains each text at most once.

    Args:
        lengths: number of tokens of each text. There must be at least as many texts as wanted
            lengths.
        wanted: wanted lengths in tokens.
        seed: seed of the choice between texts of one length.
    """
    texts = list(lengths)
    random.Random(seed).shuffle(texts)  # noqa: S311 - a choice, not a secret
    texts.sort(key=lengths.__getitem__)  # a stable sort keeps the random order within a length
    chosen = []
    for length in sorted(wanted, reverse=True):  # long texts first, because they are rare
        right = bisect.bisect_left(texts, length, key=lengths.__getitem__)
        near = [i for i in (right - 1, right) if 0 <= i < len(texts)]
        chosen.append(texts.pop(min(near, key=lambda i: abs(lengths[texts[i]] - length))))
    return chosen


def interleave(texts: list[str]) -> list[str]:
    """Order texts of descending length so that every part of the order mixes all lengths.

    The fractional parts of the golden ratio's multiples fill the unit interval evenly after any
    number of multiples. A slow server that gets only the first texts therefore gets the same
    mixture of lengths as a fast server.
    """
    golden = (math.sqrt(5) - 1) / 2
    places = sorted(range(len(texts)), key=lambda i: (i * golden) % 1)
    order = sorted(range(len(texts)), key=places.__getitem__)
    return [texts[i] for i in order]


def _paragraphs(corpus: Path, titles: Path) -> Iterator[str]:
    documents = corpus.read_text(encoding="utf-8").strip("\n").split("\n\n")
    sources = [line.split("\t")[0] for line in titles.read_text(encoding="utf-8").splitlines()]
    for document, source in zip(documents, sources, strict=True):
        if source in SOURCES:
            # an e-mail address is personal data
            yield from (text for text in document.split("\n") if "@" not in text)


def main() -> None:
    """Print the chosen texts, one per line."""
    corpus, titles, tokenizer_json = map(Path, sys.argv[1:])
    tokenizer = Tokenizer.from_file(str(tokenizer_json))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    lengths = {text: len(tokenizer.encode(text).ids) for text in _paragraphs(corpus, titles)}
    fitting = {text: n for text, n in lengths.items() if MIN_TOKENS <= n <= MAX_TOKENS}
    print("\n".join(interleave(choose(fitting, wanted_lengths(TEXTS), SEED))))


if __name__ == "__main__":
    main()
