"""Labelled paragraphs of the worked example and their selection."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from benchmarks.classification import paragraphs
from benchmarks.classification.paragraphs import (
    LABELS,
    PER_LABEL,
    Document,
    Example,
    read,
    select,
    split_documents,
    usable,
    word_sequences,
)

FILES = {file: read(file) for file in PER_LABEL}
EVERY = [example for examples in FILES.values() for example in examples]
PLAIN = "The baker opened the shop before the sun was up and sold warm bread to all who came by."
PARAGRAPH = PLAIN.replace("came by.", "came by on foot or by boat.")


def _document(source: str, number: int, author: str = "", count: int = 1) -> Document:
    words = [
        " ".join([f"Word{chr(97 + number)}{chr(97 + n)}{'x' * i}" for i in range(24)]) + " end."
        for n in range(count)
    ]
    return Document(source, f"title {number}", author, words)


def test_labels_are_balanced_at_every_length() -> None:
    for file, examples in FILES.items():
        counts = Counter((e.label, len(e.text.split()) // 10) for e in examples)
        assert counts == {
            (label, tens): count
            for label in LABELS.values()
            for tens, count in PER_LABEL[file].items()
        }
    assert len(EVERY) == 8000


def test_no_document_and_no_author_is_in_two_files() -> None:
    for first, second in combinations(FILES.values(), 2):
        assert not {(e.label, e.document) for e in first} & {(e.label, e.document) for e in second}
        authors = [
            {e.document.split(",")[0] for e in examples if e.label == "literature"}
            for examples in (first, second)
        ]
        assert authors[0]
        assert not authors[0] & authors[1]


def test_no_paragraph_has_a_marker_or_shares_six_words_with_another() -> None:
    assert all(usable(example.text) for example in EVERY)
    sequences = Counter(sequence for e in EVERY for sequence in word_sequences(e.text))
    assert max(sequences.values()) == 1


@pytest.mark.parametrize(
    "text",
    [
        PLAIN[:60] + ".",  # too short
        " ".join([PARAGRAPH[:-1]] * 3) + ".",  # too long
        PARAGRAPH.replace("warm", "12"),
        PARAGRAPH.replace("warm", '"warm"'),
        PARAGRAPH.replace("warm", "Wikipedia"),
        PARAGRAPH.replace("warm", "bread.gov"),
        PARAGRAPH.replace("warm", "Friday"),
        f"MRS. BAKER. {PARAGRAPH}",
    ],
)
def test_marked_paragraphs_are_unusable(text: str) -> None:
    assert usable(PARAGRAPH)
    assert not usable(text)


def test_documents_of_an_author_stay_together() -> None:
    documents = [_document("gutenberg", n, author=f"author {n // 2}") for n in range(20)]
    split = split_documents(documents, seed=0)
    authors = [{document.author for document in part} for part in split.values()]
    assert [len(names) for names in authors] == [2, 1, 7]
    assert len(set.union(*authors)) == 10
    assert sum(map(len, split.values())) == 20


def test_each_document_gives_a_paragraph_before_any_gives_two() -> None:
    documents = [_document("wiki", n, count=3) for n in range(4)]
    chosen = select(documents, {2: 6}, set(), seed=0)
    assert sorted(Counter(example.document for example in chosen).values()) == [1, 1, 2, 2]
    with pytest.raises(ValueError, match=r"more paragraphs \(missing: \{'20 words': 1\}\)"):
        select(documents, {2: 13}, set(), seed=0)


def test_repeated_paragraphs_are_selected_once() -> None:
    first = _document("wiki", 1)
    copy = first._replace(title="a copy")
    seen: set[tuple[str, ...]] = set()
    assert select([first], {2: 1}, seen, seed=0) == [
        Example(first.paragraphs[0], "encyclopedia", "title 1")
    ]
    with pytest.raises(ValueError, match="more paragraphs"):
        select([copy], {2: 1}, seen, seed=0)


def test_attribution_names_every_label() -> None:
    text = (paragraphs.DATA / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for label in LABELS.values():
        assert f"| `{label}` |" in text
