"""Arrays of JSON, whose elements are texts or objects."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import Source
from fillmask.cli.formats.by_extension import open_rows
from fillmask.cli.formats.json import JsonArrayRows
from tests.service.cli.command_line import dice, fields_in, rows_in


def rows_of(content: bytes) -> list[dict[str, Any] | str]:
    rows = JsonArrayRows(Source("a.json", lambda: io.BytesIO(content), "text"))
    found = fields_in(rows)
    assert rows.count() == len(found)
    return found


def random_element(rng: Any) -> Any:
    text = "".join(rng.choices('ab"\\[]{},: \n\té😀\u2028', k=rng.randint(0, 12)))
    return rng.choice([text, {"text": text, text: [text, {"n": rng.random()}, None]}])


@pytest.mark.parametrize("seed", range(20))
def test_any_array(seed: int) -> None:
    # The standard library's parser of whole files is the oracle.
    rng = dice(seed)
    elements = [random_element(rng) for _ in range(rng.randint(0, 9))]
    content = json.dumps(elements, indent=rng.choice([None, 2]), ensure_ascii=rng.random() < 0.5)
    expected = [{"text": one} if isinstance(one, str) else one for one in elements]
    assert rows_of(rng.choice(["", "\ufeff", " \r\n"]).encode() + content.encode()) == expected


def test_elements_that_are_no_rows() -> None:
    # Each is an unreadable row, because the next one begins in a known place.
    rows = rows_of(b'["a", 1, null, [2], {"a": 1, "a": 2}, {"a": NaN}, "\\ud800", "b"]')
    assert [rows[0], rows[-1]] == [{"text": "a"}, {"text": "b"}]
    assert [row.partition(" (")[0] for row in rows if isinstance(row, str)] == [
        "The element must be a JSON object",
        "The element must be a JSON object",
        "The element must be a JSON object",
        'The field "a" is a duplicate; remove it.',
        "The element contains NaN, which is not a JSON number; use null or a number.",
        "The element has an unpaired surrogate escape; remove it or complete the pair.",
    ]


@pytest.mark.parametrize(
    ("content", "start"),
    [
        (b"", "a.json must be a JSON array"),
        (b'{"text": "a"}\n{"text": "b"}\n', "a.json must be a JSON array"),
        (b"[", "a.json, row 1 is not valid JSON"),
        (b'["a"', "a.json, row 2 is not valid JSON (the array has no end)"),
        (b'["a" "b"]', 'a.json, row 2 is not valid JSON (expecting , or ] instead of ")'),
        (b"[]]", "a.json, row 1 is not valid JSON (expecting nothing instead of ])"),
        (b'["a",]', "a.json, row 2 is not valid JSON (expecting value)"),
        (b'["a", {"b": }]', "a.json, row 2 is not valid JSON (expecting value)"),
        (b'["a"] "b"', 'a.json, row 2 is not valid JSON (expecting nothing instead of ")'),
        (
            b'["\xff"]',
            (
                "a.json is not valid UTF-8; encode it as UTF-8, or set --encoding to its encoding, "
                "such as "
            ),
        ),
    ],
)
def test_files_that_are_no_arrays(content: bytes, start: str) -> None:
    # After such an error the next row has no known start, so the entire file is invalid.
    with pytest.raises(CommandError) as caught:
        rows_of(content)
    assert str(caught.value).startswith(start)
    with pytest.raises(CommandError, match=r"row 2 is not valid JSON \(too many levels\)"):
        rows_of(b'["a", ' + b"[" * 200_000)  # Python 3.13 reads 5,000 levels


def test_rows_become_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('[\n  {\n    "a": 1.00e3,\r\n    "b": "\\u00e9\\n"\n  },\n  "c"\n]\n')
    first, second = (row.to_json() for row in rows_in(open_rows(path, 'te"xt')))
    assert b"\n" not in first
    assert b'"a": 1.00e3' in first
    assert json.loads(first) == {"a": 1000, "b": "é\n"}
    assert second == b'{"te\\"xt":"c"}'
