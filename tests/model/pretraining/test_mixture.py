"""Choice of documents by source, share and author."""

from __future__ import annotations

import json
import lzma
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fillmask_model.pretraining.mixture import Mixture, mix, read_document_sources

DOCUMENTS = [f"text {i}" for i in range(2000)]
TITLES = [("news" if i % 2 else "books", f"Author {i % 5}, Jr.") for i in range(2000)]
NEWS = {text for text, title in zip(DOCUMENTS, TITLES, strict=True) if title[0] == "news"}


def chosen(seed: int = 0, only: dict[str, tuple[str, ...]] | None = None, **shares: float) -> Any:
    """Return a selection from 1,000 documents of news and 1,000 of books."""
    return mix(iter(DOCUMENTS), TITLES, Mixture(shares, only or {}, seed))


def test_whole_shares_are_exact() -> None:
    # A share of 3 takes every document three times. Sources without a share have a share of 0.
    copies = Counter(chosen(news=3, books=0))
    assert set(copies) == NEWS
    assert set(copies.values()) == {3}
    assert set(chosen(news=1)) == NEWS
    assert len(chosen(news=1, books=1)) == 2000


@pytest.mark.parametrize("share", [0.1, 0.5, 2.25])
def test_broken_shares_hold_on_average(share: float) -> None:
    # The fraction of a share is the probability of one more copy.
    # The tolerance is five standard deviations.
    copies = Counter(chosen(news=share))
    fraction = share % 1
    bound = 5 * math.sqrt(1000 * fraction * (1 - fraction))
    assert abs(sum(copies.values()) - 1000 * share) < bound
    assert set(copies.values()) <= {int(share), int(share) + 1}


def test_only_the_authors_named_are_taken() -> None:
    # The list of authors does not affect documents of other sources.
    taken = set(chosen(only={"news": ("Author 1", "hor 3,")}, news=1, books=1))
    for text, (source, author) in zip(DOCUMENTS, TITLES, strict=True):
        wanted = source == "books" or "Author 1" in author or "Author 3" in author
        assert (text in taken) == wanted


def test_leaving_an_author_out_moves_no_other_choice() -> None:
    assert set(chosen(only={"news": ("Author 1",)}, news=0.5)) < set(chosen(news=0.5))


def test_a_seed_decides_choice_and_order() -> None:
    first = chosen(news=0.5)
    assert first == chosen(news=0.5)
    assert set(first) != set(chosen(seed=1, news=0.5))
    assert chosen(news=1) != sorted(chosen(news=1), key=DOCUMENTS.index)
    assert chosen(news=1) != chosen(seed=1, news=1)


@pytest.mark.parametrize("titles", [TITLES[:-1], [*TITLES, ("news", "nobody")]])
def test_a_table_of_another_length_is_refused(titles: list[tuple[str, str]]) -> None:
    with pytest.raises(ValueError, match="table"):
        mix(DOCUMENTS, titles, Mixture({"news": 1}, {}, 0))


def test_titles_are_read_in_file_order(tmp_path: Path) -> None:
    # The table of titles is a plain file or an xz file.
    table = "books\tEmma\tAusten\t99\nnews\tA: b\t\t7\n"
    (tmp_path / "titles.tsv").write_text(table)
    with lzma.open(tmp_path / "titles.tsv.xz", "wt") as stream:
        stream.write(table)
    for name in ("titles.tsv", "titles.tsv.xz"):
        assert read_document_sources(tmp_path / name) == [("books", "Austen"), ("news", "")]


@pytest.mark.parametrize("row", ["books\tEmma\tAusten", "books\tEmma\tAusten\t9\t9", ""])
def test_a_row_of_other_width_is_named(tmp_path: Path, row: str) -> None:
    # The ValueError names the first line without four columns.
    path = tmp_path / "titles.tsv"
    path.write_text(f"news\tA\tB\t7\n{row}\nnews\tA\tB\t7\n")
    with pytest.raises(ValueError, match="line 2 must have 4 columns"):
        read_document_sources(path)


def test_a_mixture_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mixture.json"
    fields = {"shares": {"news": 1}, "only_authors": {"news": ["A", "B"]}, "seed": 3}
    path.write_text(json.dumps(fields))
    assert Mixture.read(path) == Mixture({"news": 1.0}, {"news": ("A", "B")}, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"share": {}},
        {"seed": None},
        {"seed": "first"},
        {"seed": -1},
        {"seed": 1.5},
        {"shares": None},
        {"shares": ["news"]},
        {"shares": {"news": -0.1}},
        {"shares": {"news": None}},
        {"shares": {"news": "half"}},
        {"shares": {"news": True}},
        {"shares": {"news": math.nan}},
        {"only_authors": None},
        {"only_authors": {"news": "Austen"}},
        {"only_authors": {"news": [1]}},
        {"only_authors": {"new": ["Austen"]}},
    ],
)
def test_a_broken_mixture_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    # The ValueError for an unknown or invalid field names the file.
    path = tmp_path / "mixture.json"
    fields = {"shares": {"news": 1}, "only_authors": {}, "seed": 3}
    path.write_text(json.dumps(fields | change))
    with pytest.raises(ValueError, match=r"mixture\.json"):
        Mixture.read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "must have exactly the fields shares, only_authors and seed"),
        ('{"shares": {}, "seed": 1}', "must have exactly the fields"),
        ("[]", "must contain a JSON object"),
        ("3", "must contain a JSON object"),
        ("{", "is not valid JSON"),
    ],
)
def test_a_mixture_lacking_fields_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mixture.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"mixture\.json {message}"):
        Mixture.read(path)
