"""Headlines of Wikinews and a paragraph of each article, selected from a corpus.

    python -m benchmarks.search.articles CORPUS

A headline is the query, and the second paragraph of its article is the document to find. The first
paragraph repeats the words of the headline, so BM25 finds it for 92 of 100 headlines. The training
file has the second and the third paragraphs of other articles. CORPUS is a directory with the files
train-*.txt.xz and train-titles.tsv.xz. data/ATTRIBUTION.md names the source and its licence.
"""

from __future__ import annotations

import html
import lzma
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fillmask_model.documents import open_text, read_documents

DATA = Path(__file__).parent / "data"
HEADER = ("query", "document")
ARTICLES = {"test": 3000, "validation": 500, "train": 7000}  # in the order of the choice
PLACES = {"test": (1,), "validation": (1,), "train": (1, 2)}  # of the paragraphs, from 0
HEADLINE_WORDS, PARAGRAPH_WORDS = range(4, 21), range(15, 81)
SEED = 0


class Pair(NamedTuple):
    """A headline and a paragraph of its article."""

    query: str
    document: str


def usable_articles(corpus: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield headline and paragraphs of the articles whose first three paragraphs have a length."""
    with open_text(corpus / "train-titles.tsv.xz") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream]
    documents = read_documents(sorted(corpus.glob("train-0*.txt.xz")))
    for text, (source, title, *_) in zip(documents, rows, strict=True):
        headline, paragraphs = html.unescape(title), text.split("\n")[:3]
        lengths = [len(one.split()) for one in paragraphs[1:]]
        if (
            source == "wikinews"
            and len(headline.split()) in HEADLINE_WORDS
            and len(lengths) == len(PLACES["train"])
            and all(length in PARAGRAPH_WORDS for length in lengths)
        ):
            yield headline, paragraphs


def read(file: str) -> list[Pair]:
    """Read the pairs of the file "train", "validation" or "test"."""
    with open_text(DATA / f"{file}.tsv.xz") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream]
    return [Pair(*row) for row in rows[1:]]


def main() -> None:
    """Write the three files and print their sizes."""
    [corpus] = map(Path, sys.argv[1:])
    articles = dict(usable_articles(corpus))
    headlines = sorted(articles)
    random.Random(SEED).shuffle(headlines)  # noqa: S311 - a choice, not a secret
    for file, count in ARTICLES.items():
        chosen, headlines = headlines[:count], headlines[count:]
        pairs = [Pair(one, articles[one][place]) for one in chosen for place in PLACES[file]]
        path = DATA / f"{file}.tsv.xz"
        lines = "".join("\t".join(row) + "\n" for row in [HEADER, *pairs])
        path.write_bytes(lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME))
        print(f"{path.name}: {len(pairs)} pairs of {count} articles, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
