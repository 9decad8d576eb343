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
    # The edit between two texts never splits a character.
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


def test_what_is_masked_at_a_selection(playground: Playground) -> None:
    # A cut mask is taken whole, a caret in a mask masks nothing, and spaces come where needed.
    mask = "[MASK]"
    cases = [
        ("The old dog.", 5, 5, "The [MASK] dog."),
        ("The old dog.", 3, 8, "The [MASK] dog."),
        ("A [MASK] dog.", 5, 10, "A [MASK]og."),
        ("A [MASK] dog.", 4, 4, None),
        ("a  b", 2, 2, "a [MASK] b"),
        ("(", 1, 1, "([MASK]"),
        ("", 0, 0, "[MASK]"),
    ]
    for text, start, end, masked in cases:
        edit = call(playground, "text.js", "maskingAt", text, start, end, mask)
        found = edit and text[: edit["start"]] + edit["inserted"] + text[edit["end"] :]
        assert found == masked, (text, start, end)


def test_around(playground: Playground) -> None:
    # The excerpt consists of entire words, with an ellipsis for the rest of the text.
    text = "one two three four five six seven eight nine ten"
    at = text.index("five")
    found = call(playground, "text.js", "around", [at, at + 4], text, 12)
    assert found == ["…three four ", " six seven…"]


def test_percent(playground: Playground) -> None:
    # Percentages have two decimals, or more if both decimals would be zero.
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
    # The ceiling is the smallest round number above all probabilities.
    cases = [([0.7, 0.1], 1), ([0.5], 0.5), ([0.11], 0.2), ([0.001], 0.01), ([1.0000001], 1)]
    for shares, full in cases:
        assert call(playground, "numbers.js", "ceiling", shares) == full


def test_split_of_filled_pairs(playground: Playground) -> None:
    # A fill changes the part with its mask. Joint fills change both parts.
    cases = [
        (["the [MASK]", "a cat"], "the dog a cat", ["the dog", "a cat"]),
        (["the [MASK]", "a [MASK]"], "the [MASK] a cat", ["the [MASK]", "a cat"]),
        (["the [MASK]", "a [MASK]"], "the new dog a cat", ["the new dog", "a cat"]),
        (["a (b) [MASK]?", "[MASK] $1."], "a (b) c? d $1.", ["a (b) c?", "d $1."]),
        (["walk [MASK]", "x"], "walking x", ["walking", "x"]),
        (["walk", "[MASK] x"], "walking x", ["walk", "ing x"]),
        (["the dog", "a cat"], "the dog a cup", ["the dog", "a cup"]),
    ]
    for (text, second), sequence, parts in cases:
        inputs = {"text": text, "text_pair": second}
        assert call(playground, "pairs.js", "splitFilled", inputs, sequence, "[MASK]") == parts
    assert call(playground, "pairs.js", "splitFilled", "a [MASK]", "a b", "[MASK]") == ["a b"]


def test_places_in_pairs(playground: Playground) -> None:
    # Positions count characters in responses and UTF-16 code units on the page.
    inputs = {"text": "😀 a", "text_pair": "b 😀 c"}
    tokens = [{"part": "text", "start": 2, "end": 3}, {"part": "text_pair", "start": 4, "end": 5}]
    found = call(playground, "pairs.js", "tokensInJoined", inputs, tokens)
    assert [(token["start"], token["end"]) for token in found] == [(2, 3), (8, 9)]
    pieces = call(
        playground,
        "text.js",
        "piecesOf",
        "😀 a\nb 😀 c",
        [token | {"surprisal": 1} for token in found],
    )
    named = [piece for piece in pieces if "tokens" in piece]
    assert [piece["text"] for piece in named] == ["a", "c"]
    masked = [call(playground, "pairs.js", "maskInputs", inputs, one, "[MASK]") for one in named]
    assert masked == [inputs | {"text": "😀 [MASK]"}, inputs | {"text_pair": "b 😀 [MASK]"}]
