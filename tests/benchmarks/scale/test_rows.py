"""Rows of the recipes, and what a comparison of two outputs finds."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.scale.rows import Answer, differences, read_answers, write_texts

ANSWERS = [Answer(0, "tea", 0.5), Answer(1, "dog", 0.25), Answer(2, "sea", 0.125)]


def test_order_does_not_matter() -> None:
    assert differences(ANSWERS, ANSWERS[::-1]) == []


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (ANSWERS[:1], "2 lost, first 1"),
        ([*ANSWERS, ANSWERS[1]], "1 doubled, first 1"),
        ([*ANSWERS, Answer(7, "tea", 0.5)], "1 unknown, first 7"),
        ([*ANSWERS[:2], Answer(2, "lake", 0.125)], "1 with another token, first 2"),
        ([*ANSWERS[:2], Answer(2, "sea", 0.125 + 1e-16)], "1 with another score, first 2"),
    ],
)
def test_difference_is_named(found: list[Answer], expected: str) -> None:
    assert differences(ANSWERS, found) == [expected]


def test_changed_copy_of_a_doubled_row_is_found() -> None:
    found = differences(ANSWERS, [Answer(0, "milk", 0.5), *ANSWERS])
    assert found == ["1 doubled, first 0", "1 with another token, first 0"]


def test_texts_are_always_the_same_and_have_one_mask(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_texts(tmp_path / name, 300)
    rows = pq.read_table(tmp_path / "a").to_pylist()
    assert rows == pq.read_table(tmp_path / "b").to_pylist()
    assert [row["id"] for row in rows] == list(range(300))
    assert {row["inputs"].count("[MASK]") for row in rows} == {1}


def test_answers_of_a_file_with_fills_and_of_a_folder_with_columns(tmp_path: Path) -> None:
    nested = [{"id": a.row, "fills": [{"token_str": a.token, "score": a.score}]} for a in ANSWERS]
    pq.write_table(pa.Table.from_pylist(nested), tmp_path / "fills.parquet")
    for number, answer in enumerate(ANSWERS):
        columns = [{"id": answer.row, "token_str": answer.token, "score": answer.score}]
        (tmp_path / "folder").mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(columns), tmp_path / "folder" / f"{number}.parquet")
    assert list(read_answers(tmp_path / "fills.parquet")) == ANSWERS
    assert list(read_answers(tmp_path / "folder")) == ANSWERS
