"""JavaScript modules without side effects, called in the browser."""

from typing import Any

from tests.service.playground.playground import MINUS, Playground


def call(playground: Playground, module: str, function: str, *arguments: Any) -> Any:
    """Call a function of one of the page's JavaScript modules."""
    return playground.page.evaluate(
        "async ([url, name, given]) => (await import(url))[name](...given)",
        [f"{playground.url}/playground/{module}", function, arguments],
    )


def test_difference(playground: Playground) -> None:
    """The edit between two texts never splits a character."""
    cases = [
        ("a b c", "a x c", "x"),
        ("", "new", "new"),
        ("old", "", ""),
        ("same", "same", ""),
        ("aaa", "aa", ""),
        ("ab", "aab", "a"),
        ("x 😀 y", "x 😁 y", "😁"),  # the emoji differ in the second of two units
        ("x 😀 y", "x 🨀 y", "🨀"),  # the emoji differ in the first of two units
        ("😀", "😀😀", "😀"),
    ]
    for before, after, inserted in cases:
        found = call(playground, "text.js", "difference", before, after)
        units = before.encode("utf-16-le")
        start, end = found["start"] * 2, found["end"] * 2
        head, tail = units[:start].decode("utf-16-le"), units[end:].decode("utf-16-le")
        assert head + found["inserted"] + tail == after
        assert found["inserted"] == inserted


def test_around(playground: Playground) -> None:
    """The excerpt consists of entire words, with an ellipsis for the rest of the text."""
    text = "one two three four five six seven eight nine ten"
    at = text.index("five")
    found = call(playground, "text.js", "around", [at, at + 4], text, 12)
    assert found == ["…three four ", " six seven…"]


def test_percent(playground: Playground) -> None:
    """Percentages have two decimals, or more if both decimals would be zero."""
    cases = {
        1: "100.00 %",
        0.72784: "72.78 %",
        0.0001: "0.01 %",
        0.00008712: "0.0087 %",
        0.00000123: "0.00012 %",
        3.6e-11: f"3.6e{MINUS}9 %",
        0: "0.00 %",
    }
    for share, shown in cases.items():
        assert call(playground, "numbers.js", "percent", share) == shown


def test_ceiling(playground: Playground) -> None:
    """The ceiling is the smallest round number above all probabilities."""
    cases = [([0.7, 0.1], 1), ([0.5], 0.5), ([0.11], 0.2), ([0.001], 0.01), ([1.0000001], 1)]
    for shares, full in cases:
        assert call(playground, "numbers.js", "ceiling", shares) == full
