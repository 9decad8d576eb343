"""Tables of the results of each task, for terminals and pipes."""

import io
import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fillmask.bundles.bundle import Bundle
from fillmask.cli.tasks import Done, rows_of
from fillmask.cli.terminal import Style
from fillmask.tasks.classify.parameters import ClassifyParameters
from fillmask.tasks.classify.results import LabelScore
from fillmask.tasks.fill_mask.results import Fill, TargetFill, TextFills
from fillmask.tasks.score.results import TextScore, TokenScore
from tests.service.cli.command_line import Terminal

TEXT = "Paris is the [MASK] of France."


def fill(score: float, token_str: str, text: str = TEXT) -> Fill:
    return Fill(score, 7, token_str, text.replace("[MASK]", token_str))


PLAIN = Style()


def table(
    task: str,
    result: Any,
    style: Style = PLAIN,
    text: str = TEXT,
    kind: str | None = None,
    **given: Any,
) -> list[str]:
    """Return the lines of a result's table.

    Args:
        kind: problem type of the classifier.
        given: parameters of classify.
    """
    bundle = SimpleNamespace(classification=SimpleNamespace(problem_type=kind))
    done = Done(cast("Bundle", bundle), text, ClassifyParameters(**given), result)
    return list(rows_of(task).table(done, style))


def fill_table(
    masks: Sequence[Sequence[Fill]], style: Style = PLAIN, text: str = TEXT
) -> list[str]:
    return table("fill-mask", TextFills(masks), style, text)


def test_a_table() -> None:
    # The aligned columns are probability, bar, token and text.
    fills = [fill(0.7278, "capital"), fill(0.04, "city"), fill(0.0002, "port"), fill(1e-7, "X")]
    assert fill_table([fills]) == [
        " 0.7278  ██████████████▌       capital  Paris is the capital of France.",
        " 0.0400  ▊                     city     Paris is the city of France.",
        " 0.0002                        port     Paris is the port of France.",
        "1.0e-07                        X        Paris is the X of France.",
    ]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.5, 0.731, 0.999, 1.0])
def test_bars_are_as_long_as_their_share(share: float) -> None:
    # Bars are exact to an eighth of a terminal cell.
    # Terminals without block characters show only entire cells.
    [line] = fill_table([[fill(share, "x")]])
    bar = line[9:29].rstrip()
    eighths = sum(" ▏▎▍▌▋▊▉█".index(character) for character in bar)
    assert math.isclose(eighths / 160, share, abs_tol=1 / 300)
    [line] = fill_table([[fill(share, "x")]], Style(encoding="ascii"))
    assert line[9:29].rstrip() == "#" * round(20 * share)


def test_several_masks_have_a_heading_each() -> None:
    # A mask may have no fills.
    one = replace(fill(0.5, "b"), window=(12, 345))
    lines = fill_table([[fill(0.5, "a")], [], [one]])
    assert lines[0] == "Mask 1"
    assert lines[2:6] == ["", "Mask 2", "No fills.", ""]
    assert lines[6:8] == ["Mask 3", "The model reads characters 12 to 345 of the text."]


def test_targets_show_their_share_among_themselves() -> None:
    # The table shows shares because a target's probability among all tokens may be nearly 0.
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
    assert fill_table([[one, other]], text="[MASK]") == [
        "3.0e-09   0.7500  ███████████████       tea   tea",
        "1.0e-09   0.2500  █████                 sand  sand",
    ]


@pytest.mark.parametrize("width", range(20, 140, 8))
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    # A wide character takes two terminal cells, and a combining character takes none.
    before, after = "a long way 東京 cafe\u0301 " * 5, "it all goes on and on " * 5
    text = f"{before}the [MASK] of {after}"
    fills = [fill(0.5, "東京", text), fill(0.25, "capital", text)]
    for line in fill_table([fills], Style(width=width), text=text):
        cells = sum(
            0 if character == "\u0301" else 2 if character in "東京" else 1 for character in line
        )
        assert cells <= max(width, 9 + 20 + 2 + 7)
    first, second = fill_table([fills], Style(width=90), text=text)
    assert "the 東京 of it" in first
    assert second.endswith("...")
    assert "capital  ..." in second


def test_control_characters_are_not_printed() -> None:
    # No escape sequence of a text reaches the terminal.
    [line] = fill_table([[fill(0.5, "a\x1b[31m\nb", "[MASK]\tc\x07")]], text="x")
    assert line.endswith("a?[31m b  a?[31m b c?")


def test_labels_have_bars_and_logits_have_none() -> None:
    labels = [LabelScore("good", 0.9), LabelScore("b\x1bad\n", 1e-7)]
    assert table("classify", labels) == [
        " 0.9000  ██████████████████    good",
        "1.0e-07                        b?ad ",
    ]
    # for the function none, the default for regression
    logits = [LabelScore("good", 12.34567), LabelScore("bad", -0.5)]
    plain = ["  12.3457  good", "  -0.5000  bad"]
    assert table("classify", logits, function_to_apply="none") == plain
    assert table("classify", logits, kind="regression") == plain
    sigmoid = table("classify", labels, kind="regression", function_to_apply="sigmoid")
    assert sigmoid == table("classify", labels)


@pytest.mark.parametrize(
    ("surprisals", "bars"), [([4, 8], ["█" * 10 + " " * 10, "█" * 20]), ([0], [" " * 20])]
)
def test_the_highest_surprisal_has_a_full_bar(surprisals: list[float], bars: list[str]) -> None:
    tokens = tuple(TokenScore(1, "t", 0, 1, -1.0, bits) for bits in surprisals)
    summary, *lines = table("score", TextScore(-2.5, 3.5, 1, tokens))
    assert summary == (
        "Log-probability -2.5000, pseudo-perplexity 3.5000. Surprisal of each token in bits:"
    )
    assert lines == [f"{bits:7.2f}  {bar}  t" for bits, bar in zip(surprisals, bars, strict=True)]


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
    # NO_COLOR or TERM=dumb disables escape sequences.
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "77")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Style.of(Terminal()) == Style(77, escapes, "utf-8")
    name = "\x1b[1ma\x1b[0m" if escapes else "a"
    assert Style.of(Terminal()).line("1", None, "a") == f"1  {name}"


def test_a_pipe_gets_plain_lines_of_any_length() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), "latin-1")
    assert Style.of(stream) == Style(None, escapes=False, encoding="latin-1")
