"""JavaScript modules without side effects, called in the browser."""

from typing import Any

from tests.service.playground.playground import MINUS, Playground

PAIR = {"text": "😀 a", "text_pair": "b 😀 c"}


def call(playground: Playground, module: str, function: str, *arguments: Any) -> Any:
    """Call a function of one of the page's JavaScript modules."""
    return playground.page.evaluate(
        "async ([url, name, given]) => (await import(url))[name](...given)",
        [f"{playground.url}/playground/{module}", function, arguments],
    )


def test_edits_split_no_characters(playground: Playground) -> None:
    # Offsets are UTF-16 units.
    differences = [
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
    for before, after, inserted in differences:
        found = call(playground, "text.js", "difference", before, after)
        units = before.encode("utf-16-le")
        head, tail = units[: found["start"] * 2], units[found["end"] * 2 :]
        assert head.decode("utf-16-le") + inserted + tail.decode("utf-16-le") == after
        assert found["inserted"] == inserted


def test_what_is_masked_at_a_selection(playground: Playground) -> None:
    # A cut mask is taken whole, a caret in a mask masks nothing, and spaces come where needed.
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
        edit = call(playground, "text.js", "maskingAt", text, start, end, "[MASK]")
        found = edit and text[: edit["start"]] + edit["inserted"] + text[edit["end"] :]
        assert found == masked, (text, start, end)


def test_excerpts_and_figures(playground: Playground) -> None:
    # Excerpts consist of entire words, with an ellipsis for the rest of the text.
    text = "one two three four five six seven eight nine ten"
    excerpt = call(playground, "text.js", "around", [19, 23], text, 12)
    assert excerpt == ["…three four ", " six seven…"]
    percents = {
        1: "100.00 %",
        0.72784: "72.78 %",
        0.0001: "0.01 %",
        0.00008712: "0.0087 %",
        0.00000123: "0.00012 %",
        3.6e-11: f"3.6e{MINUS}9 %",
        0: "0.00 %",
    }
    for share, shown in percents.items():
        assert call(playground, "numbers.js", "percent", share) == shown
    for share, full in ((0.7, 1), (0.11, 0.2), (0.001, 0.01), (1.0000001, 1)):
        assert call(playground, "numbers.js", "ceiling", share) == full


def test_pairs_and_their_joined_texts(playground: Playground) -> None:
    # A fill changes the part with its mask. Joint fills change both parts.
    cases = [
        ("the [MASK]", "a cat", "the dog a cat", ["the dog", "a cat"]),
        ("the [MASK]", "a [MASK]", "the [MASK] a cat", ["the [MASK]", "a cat"]),
        ("the [MASK]", "a [MASK]", "the new dog a cat", ["the new dog", "a cat"]),
        ("a (b) [MASK]?", "[MASK] $1.", "a (b) c? d $1.", ["a (b) c?", "d $1."]),
        ("walk [MASK]", "x", "walking x", ["walking", "x"]),
        ("walk", "[MASK] x", "walking x", ["walk", "ing x"]),
        ("the dog", "a cat", "the dog a cup", ["the dog", "a cup"]),
    ]
    for text, second, sequence, parts in cases:
        inputs = {"text": text, "text_pair": second}
        assert call(playground, "pairs.js", "splitFilled", inputs, sequence, "[MASK]") == parts
    assert call(playground, "pairs.js", "splitFilled", "a [MASK]", "a b", "[MASK]") == ["a b"]

    # Positions count characters in responses and UTF-16 code units on the page.
    scored = [{"part": "text", "start": 2, "end": 3}, {"part": "text_pair", "start": 4, "end": 5}]
    pieces = call(playground, "pairs.js", "joinedPieces", PAIR, scored)
    assert "".join(piece["text"] for piece in pieces) == "😀 a\nb 😀 c"
    named = [piece for piece in pieces if "tokens" in piece]
    assert [piece["text"] for piece in named] == ["a", "c"]
    masked = [call(playground, "pairs.js", "maskInputs", PAIR, one, "[MASK]") for one in named]
    assert masked == [PAIR | {"text": "😀 [MASK]"}, PAIR | {"text_pair": "b 😀 [MASK]"}]
