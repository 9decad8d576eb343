"""Labelled paragraphs of the worked example, selected from a corpus.

    python -m benchmarks.classification.paragraphs CORPUS

The label of a paragraph is the kind of its source. CORPUS is a directory with the files
train-*.txt.xz and train-titles.tsv.xz. data/ATTRIBUTION.md lists the sources and their licences.

These rules prevent a classifier from recognising a source by its format or by a single document:

- The training data of the built-in model contain none of the documents.
- The training, validation and test files contain different documents. All books of an author are in
  the same file.
- In each file, all labels have the same number of paragraphs in each range of lengths: 20 to 29
  words, 30 to 39 words and 40 to 49 words.
- A paragraph contains only letters from A to Z, spaces, full stops, commas, apostrophes and
  hyphens. The files therefore contain no digits, quotation marks or markup.
- No paragraph contains a source's name, a domain name, a day of the week or a speaker's name.
- No two paragraphs share six consecutive words.
"""

from __future__ import annotations

import html
import lzma
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fillmask_model.documents import open_text, read_documents
from train_default import AUTHORS, PHASES, mixed_documents

DATA = Path(__file__).parent / "data"
LABELS = {
    "wiki": "encyclopedia",
    "wikinews": "news",
    "gutenberg": "literature",
    "medquad": "health",
    "gov": "government",
}
# authors of the mixtures whose books are science or essays
NON_FICTION = frozenset({"Benjamin Franklin", "Darwin", "Thoreau"})
HEADER = ("text", "label", "document")
# paragraphs per label in each file, by the tens of their number of words
PER_LABEL = {
    "test": {2: 135, 3: 105, 4: 60},
    "validation": {2: 45, 3: 35, 4: 20},
    "train": {2: 540, 3: 420, 4: 240},
}
# share of the documents that each file selects its paragraphs from
DOCUMENT_SHARES = {"test": 0.2, "validation": 0.1, "train": 0.7}
SHARED_WORDS = 6
# with the seeds 0 and 1, the authors of the validation file have too few paragraphs
SEED = 2
_PLAIN = re.compile(r"[A-Z][A-Za-z ,.'-]*[a-z]\.")
# a name in capitals before the lines of a character in a play
_SPEAKER = re.compile(r"^[A-Z]{2}[A-Z .'-]*\. ")
_SOURCE_NAME = re.compile(
    r"wiki|gutenberg|digital ?gov|medlineplus|national institutes? of|"
    r"\b(?:gsa|nih|ninds|niddk|nhlbi|cdc|gard)\b",
    re.IGNORECASE,
)
_DOMAIN = re.compile(r"[A-Za-z]\.[a-z]")
_DAY = re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day")
_MARKERS = (_SPEAKER, _SOURCE_NAME, _DOMAIN, _DAY)


class Document(NamedTuple):
    """Document of a corpus.

    Attributes:
        source: key of the source in LABELS.
        title: title, or path in the source's repository.
        author: last name of a book's author, or an empty string for other sources.
        paragraphs: paragraphs in the order of the document.
    """

    source: str
    title: str
    author: str
    paragraphs: list[str]


class Example(NamedTuple):
    """Labelled paragraph of the worked example."""

    text: str
    label: str
    document: str


def usable(paragraph: str) -> bool:
    """Return True if the length, the characters and the words of a paragraph follow the rules."""
    tens = len(paragraph.split()) // 10
    return (
        tens in PER_LABEL["train"]
        and _PLAIN.fullmatch(paragraph) is not None
        and not any(marker.search(paragraph) for marker in _MARKERS)
    )


def unread_documents(corpus: Path) -> Iterator[Document]:
    """Yield the documents of the five sources that are not training data of the built-in model.

    The mixtures name the authors of all yielded books. These authors died before 1955.
    """
    with open_text(corpus / "train-titles.tsv.xz") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream]
    sources = [(source, author) for source, _title, author, *_rest in rows]
    read = {n for mixture, _ in PHASES for n in mixed_documents(sources, mixture)}
    documents = read_documents(sorted(corpus.glob("train-0*.txt.xz")))
    for number, (text, row) in enumerate(zip(documents, rows, strict=True)):
        source, title, author, *_ = row
        if source not in LABELS or number in read:
            continue
        if source == "gutenberg":
            named = [name for name in AUTHORS if name in author]
            if len(named) != 1 or named[0] in NON_FICTION:
                continue
            author = named[0].split()[-1]
        yield Document(source, title, author, text.split("\n"))


def split_documents(documents: Iterable[Document], seed: int) -> dict[str, list[Document]]:
    """Split documents into the three files, with all books of an author in one file."""
    groups: dict[str, list[Document]] = defaultdict(list)
    for document in documents:
        groups[document.author or document.title].append(document)
    names = sorted(groups)
    random.Random(seed).shuffle(names)  # noqa: S311 - a choice, not a secret
    split: dict[str, list[Document]] = {}
    begin, share = 0, 0.0
    for file, file_share in DOCUMENT_SHARES.items():
        share += file_share
        end = round(share * len(names))
        split[file] = [document for name in names[begin:end] for document in groups[name]]
        begin = end
    return split


def select(
    documents: Iterable[Document], quotas: Mapping[int, int], seen: set[tuple[str, ...]], seed: int
) -> list[Example]:
    """Select paragraphs of one source, from as many documents as possible.

    Args:
        quotas: number of paragraphs by length. The lengths are in tens of words, rounded down.
        seen: word sequences of the paragraphs selected so far. The function adds new sequences.

    Raises:
        ValueError: the documents have too few usable paragraphs.
    """
    rng = random.Random(seed)  # noqa: S311 - a choice, not a secret
    candidates = []
    for document in documents:
        paragraphs = [paragraph for paragraph in document.paragraphs if usable(paragraph)]
        rng.shuffle(paragraphs)
        # the number in its document comes first, so that each document gives one paragraph in turn
        candidates += [
            (number, rng.random(), paragraph, document)
            for number, paragraph in enumerate(paragraphs)
        ]
    missing = Counter(quotas)
    selected = []
    for _, _, paragraph, document in sorted(candidates, key=lambda candidate: candidate[:2]):
        tens = len(paragraph.split()) // 10
        sequences = word_sequences(paragraph)
        if missing[tens] and not sequences & seen:
            missing[tens] -= 1
            seen |= sequences
            title = html.unescape(document.title)
            name = f"{document.author}, {title}" if document.author else title
            selected.append(Example(paragraph, LABELS[document.source], name))
    if lacking := {f"{tens}0 words": count for tens, count in missing.items() if count}:
        raise ValueError(f"the documents must have more paragraphs (missing: {lacking})")
    return selected


def word_sequences(paragraph: str) -> set[tuple[str, ...]]:
    """Return all sequences of SHARED_WORDS consecutive words of a paragraph, in lower case."""
    words = re.findall(r"[a-z']+", paragraph.lower())
    return {tuple(words[i : i + SHARED_WORDS]) for i in range(len(words) - SHARED_WORDS + 1)}


def build(documents: Collection[Document]) -> dict[str, list[Example]]:
    """Return the examples of each file, in a seeded random order."""
    seen: set[tuple[str, ...]] = set()
    files: dict[str, list[Example]] = {file: [] for file in PER_LABEL}
    for source in LABELS:
        own = [document for document in documents if document.source == source]
        for file, part in split_documents(own, SEED).items():
            files[file] += select(part, PER_LABEL[file], seen, SEED)
    for examples in files.values():
        random.Random(SEED).shuffle(examples)  # noqa: S311 - an order, not a secret
    return files


def read(file: str) -> list[Example]:
    """Read the examples of the file "train", "validation" or "test"."""
    with open_text(DATA / f"{file}.tsv.xz") as stream:
        rows = [line.rstrip("\n").split("\t") for line in stream]
    return [Example(*row) for row in rows[1:]]


def main() -> None:
    """Write the three files and print their sizes."""
    [corpus] = map(Path, sys.argv[1:])
    for file, examples in build(list(unread_documents(corpus))).items():
        path = DATA / f"{file}.tsv.xz"
        lines = "".join("\t".join(row) + "\n" for row in [HEADER, *examples])
        path.write_bytes(lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME))
        documents = len({example.document for example in examples})
        size = path.stat().st_size
        print(f"{path.name}: {len(examples)} paragraphs of {documents} documents, {size} bytes")


if __name__ == "__main__":
    main()
