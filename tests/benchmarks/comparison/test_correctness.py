"""Count of the masks on which a contender agrees with transformers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.comparison.http.correctness import (
    Agreement,
    best_ordinary_tokens,
    compare,
    read_reference,
)

REFERENCE = [[{7: -1.0, 8: -1.0005, 9: -2.0}], [{5: -0.1, 6: -3.0}, {4: -0.2}]]


def test_best_tokens_ties_count_and_others_do_not() -> None:
    # A token within 1e-3 nats of the best token counts as the same token.
    assert compare(REFERENCE, [[7], [5, 4]]) == Agreement(masks=3, same=3)
    assert compare(REFERENCE, [[8], [6, 4]]) == Agreement(masks=3, same=2)
    assert compare(REFERENCE, [[9], [None, 99]]) == Agreement(masks=3, same=0)
    assert Agreement(masks=3, same=2).share == pytest.approx(2 / 3)


def test_another_number_of_masks_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"text 1 must have 2 masks \(got 1\)"):
        compare(REFERENCE, [[7], [5]])


def test_special_tokens_are_passed_over_in_one_mask_and_in_several() -> None:
    one_mask = [{"token": 103}, {"token": 7}]
    assert best_ordinary_tokens(one_mask, {103}) == [7]
    assert best_ordinary_tokens([one_mask, [{"token": 103}]], {103}) == [7, None]


def test_reference_is_read_with_ids_as_numbers(tmp_path: Path) -> None:
    # The ids are keys of JSON objects, which are always strings.
    file = tmp_path / "reference.json"
    file.write_text(json.dumps(REFERENCE))
    assert read_reference(file) == REFERENCE
