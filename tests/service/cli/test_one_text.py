"""Fills of one text, as a table or as the JSON of the HTTP response."""

import io
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.cli.terminal.fills_table import format_fills
from service.cli.terminal.style import Style
from service.tasks.results import Fill, JointFill, TargetFill
from tests.service.cli.command_line import fillmask
from tests.service.tiny import Tiny

TEXT = "Paris is the [MASK] of France."


def fill(score: float, token_str: str, text: str = TEXT) -> Fill:
    """Make a fill of the text."""
    return Fill(score, 7, token_str, text.replace("[MASK]", token_str))


def test_a_table() -> None:
    """The aligned columns are probability, bar, token and text."""
    fills = [fill(0.7278, "capital"), fill(0.04, "city"), fill(0.0002, "port"), fill(1e-7, "X")]
    assert list(format_fills(TEXT, [fills], Style())) == [
        " 0.7278  ██████████████▌       capital  Paris is the capital of France.",
        " 0.0400  ▊                     city     Paris is the city of France.",
        " 0.0002                        port     Paris is the port of France.",
        "1.0e-07                        X        Paris is the X of France.",
    ]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.5, 0.731, 0.999, 1.0])
def test_bars_are_as_long_as_their_share(share: float) -> None:
    """Bars are exact to an eighth of a terminal cell.

    Terminals without block characters show only entire cells.
    """
    [line] = format_fills(TEXT, [[fill(share, "x")]], Style())
    bar = line[9:29].rstrip()
    eighths = sum(" ▏▎▍▌▋▊▉█".index(character) for character in bar)
    assert math.isclose(eighths / 160, share, abs_tol=1 / 300)
    [line] = format_fills(TEXT, [[fill(share, "x")]], Style(encoding="ascii"))
    assert line[9:29].rstrip() == "#" * round(20 * share)


def test_several_masks_have_a_heading_each() -> None:
    """A mask may have no fills."""
    lines = list(format_fills(TEXT, [[fill(0.5, "a")], [], [fill(0.5, "b")]], Style()))
    assert lines[0] == "Mask 1"
    assert lines[2:6] == ["", "Mask 2", "No fills.", ""]
    assert lines[6] == "Mask 3"


def test_targets_show_their_share_among_themselves() -> None:
    """The table shows shares because a target's probability among all tokens may be nearly 0."""
    one, other = (
        TargetFill(
            score=score,
            token=1,
            token_str=name,
            sequence=name,
            log_prob=math.log(score),
            target_score=share,
            tokens=(1,),
        )
        for name, score, share in (("tea", 3e-9, 0.75), ("sand", 1e-9, 0.25))
    )
    assert list(format_fills("[MASK]", [[one, other]], Style())) == [
        "3.0e-09   0.7500  ███████████████       tea   tea",
        "1.0e-09   0.2500  █████                 sand  sand",
    ]


def test_masks_filled_together_are_one_table() -> None:
    joint = JointFill(
        score=0.5,
        token=-1,
        token_str="new york",  # noqa: S106 - a token of another kind
        sequence="He lives in new york.",
        log_prob=-0.7,
        tokens=[1, 2],
        token_strs=["new", "york"],
    )
    [line] = format_fills("He lives in [MASK] [MASK].", [[joint]], Style())
    assert line.endswith("new york  He lives in new york.")


def test_window_is_printed() -> None:
    one = fill(0.5, "a")
    one.window = (12, 345)
    assert next(format_fills(TEXT, [[one]], Style())) == "The model read characters 12 to 345."


@pytest.mark.parametrize("width", range(20, 140, 3))
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """A wide character takes two terminal cells, and a combining character takes none."""
    before, after = "a long way 東京 cafe\u0301 " * 5, "it all goes on and on " * 5
    text = f"{before}the [MASK] of {after}"
    fills = [fill(0.5, "東京", text), fill(0.25, "capital", text)]
    for line in format_fills(text, [fills], Style(width=width)):
        cells = sum(
            0 if character == "\u0301" else 2 if character in "東京" else 1 for character in line
        )
        assert cells <= max(width, 9 + 20 + 2 + 7)
    first, second = format_fills(text, [fills], Style(width=90))
    assert "the 東京 of it" in first
    assert second.endswith("...")
    assert "capital  ..." in second


def test_control_characters_are_not_printed() -> None:
    """No escape sequence of a text reaches the terminal."""
    [line] = format_fills("x", [[fill(0.5, "a\x1b[31m\nb", "[MASK]\tc\x07")]], Style())
    assert line.endswith("a?[31m b  a?[31m b c?")


class Terminal(io.StringIO):
    """Stream that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "escapes"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_escape_sequences_depend_on_the_environment(
    variables: dict[str, str],
    escapes: bool,  # noqa: FBT001 - pytest passes it
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NO_COLOR or TERM=dumb disables escape sequences."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "77")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Style.of(Terminal()) == Style(77, escapes, "utf-8")
    [line] = format_fills(TEXT, [[fill(0.5, "a")]], Style.of(Terminal()))
    assert ("\x1b[" in line) == escapes


def test_a_pipe_gets_plain_lines_of_any_length() -> None:
    with Path(os.devnull).open("w", encoding="latin-1") as stream:
        assert Style.of(stream) == Style(None, escapes=False, encoding="latin-1")


@pytest.mark.parametrize(
    ("text", "flags", "parameters"),
    [
        ("the [MASK] of", [], {}),
        ("the [MASK] of [MASK]", ["--top-k", 2], {"top_k": 2}),
        ("a [MASK]", ["--target", "dog", "--target=walks"], {"targets": ["dog", "walks"]}),
        (
            "a [MASK]",
            ["--granularity=word", "--max-word-tokens=2"],
            {"granularity": "word", "max_word_tokens": 2},
        ),
        (
            "[MASK] a [MASK]",
            ["--strategy=joint", "--order=left_to_right"],
            {"strategy": "joint", "order": "left_to_right"},
        ),
        ("dog " * 40 + "[MASK]", ["--on-long-text=window"], {"on_long_text": "window"}),
    ],
)
def test_json_equals_the_http_response(
    tiny: Tiny, client: TestClient, text: str, flags: list[Any], parameters: dict[str, Any]
) -> None:
    """The JSON ends with a line feed."""
    done = fillmask(text, "--json", "--bundle", tiny.path, *flags)
    answer = client.post("/fill-mask", json={"inputs": text, "parameters": parameters})
    assert answer.status_code == 200
    assert (done.code, done.err) == (0, "")
    assert done.out.encode() == answer.content + b"\n"


def test_a_table_has_the_same_fills(tiny: Tiny) -> None:
    arguments = ("the [MASK] of [MASK]", "--top-k=3", "--bundle", tiny.path)
    table, answer = fillmask(*arguments).out, json.loads(fillmask(*arguments, "--json").out)
    lines = [line for line in table.splitlines() if line and not line.startswith("Mask ")]
    assert len(lines) == 6
    for line, fill in zip(lines, answer[0] + answer[1], strict=True):
        assert line.split()[0] == f"{fill['score']:.4f}"
        assert line.endswith(f"  {fill['sequence']}")
        assert f"  {fill['token_str']} " in line


@pytest.mark.parametrize(
    ("text", "flags", "sentence"),
    [
        ("", [], "The text is empty; write at least one word."),
        ("\udcff [MASK]", [], "The text is not valid UTF-8; encode it as UTF-8."),
        ("a dog", [], "The text has no mask; write [MASK] in place of a word."),
        (
            "dog " * 40 + "[MASK]",
            [],
            "The text has 43 tokens, special tokens included; the model reads at most 32.",
        ),
        (
            "[MASK]",
            ["--top-k=99"],
            "parameters.top_k must be a whole number from 1 to 39 (got 99).",
        ),
        (
            "[MASK]",
            ["--top-k=two"],
            'parameters.top_k must be a whole number from 1 to 39 (got "two").',
        ),
        (
            "[MASK]",
            ["--strategy=jointly"],
            'parameters.strategy must be independent or joint (got "jointly").',
        ),
        (
            "[MASK]",
            ["--target=a", "--strategy=joint"],
            'targets and strategy "joint" cannot be combined; choose one.',
        ),
        (
            "[MASK]",
            ["--target=é"],
            'The target "é" has characters that the model\'s vocabulary lacks; remove it.',
        ),
        ("[MASK]", ["--target= "], 'parameters.targets[0] must be a non-empty text (got " ").'),
        ("[MASK]", ["--threads=0"], '--threads must be a whole number from 1 to 1024 (got "0").'),
        (
            "[MASK]",
            ["--bundle=none"],
            (
                "The bundle is invalid: none is not a directory; "
                "set bundle to the directory of a bundle."
            ),
        ),
    ],
)
def test_errors_are_one_line(tiny: Tiny, text: str, flags: list[str], sentence: str) -> None:
    """Where the HTTP API has the same error, the messages are equal. The exit code is 2."""
    done = fillmask(text, "--bundle", tiny.path, *flags)
    assert (done.code, done.out, done.err) == (2, "", f"{sentence}\n")


def test_server_limits_do_not_apply(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment variable with a misspelled setting is still an error."""
    monkeypatch.setenv("FILLMASK_MAX_TOP_K", "1")
    monkeypatch.setenv("FILLMASK_MAX_MASKS", "1")
    monkeypatch.setenv("FILLMASK_BUNDLE", str(tiny.path))
    done = fillmask("[MASK] [MASK]", "--top-k=39", "--json")
    assert [len(fills) for fills in json.loads(done.out)] == [39, 39]
    monkeypatch.setenv("FILLMASK_BUNDEL", "x")
    done = fillmask("[MASK]")
    assert done.err == 'Unknown variable "FILLMASK_BUNDEL"; did you mean FILLMASK_BUNDLE?\n'
    assert done.code == 2
