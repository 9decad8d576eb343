"""Code from the code panel, whose results must equal those on the page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.service.playground.playground import Playground
from tests.service.playground.snippets import (
    code_of,
    fill_lines,
    run_curl,
    run_javascript,
    run_python,
)

pytestmark = pytest.mark.slow

AWKWARD = "It's \"a [MASK]\" \\ $HOME `date` \\n %s 😀 — naïve\n\tsecond 'line', {x} ${y}."


def plain(playground: Playground) -> None:
    """Fill one mask between characters that are special in shells and programming languages."""
    playground.write(AWKWARD)


def several(playground: Playground) -> None:
    playground.write("The [MASK] barked at the [MASK].")


def targets(playground: Playground) -> None:
    """Rank targets, one of which has a quote."""
    playground.mode("Your words")
    playground.page.get_by_label("Rank only these").fill("tea, a 'cup'")
    playground.write("She drank [MASK].")


def targets_of_several(playground: Playground) -> None:
    """Rank targets for two masks."""
    targets(playground)
    playground.write("She drank [MASK] and [MASK].")


def words(playground: Playground) -> None:
    """Fill a mask with words, in a long text that the model reads in a window."""
    playground.mode("Whole words")
    playground.page.get_by_label("words of up to").select_option("1 token")
    playground.page.get_by_label("read around the masks").check()
    playground.write("very " * 300 + "[MASK].")


def together(playground: Playground) -> None:
    """Fill two masks together."""
    playground.mode("Together")
    playground.page.get_by_label("in the order").select_option("left to right")
    playground.write("He lives in [MASK] [MASK], California.")


def scores(playground: Playground) -> None:
    """Score a text without masks."""
    playground.write(AWKWARD.replace("[MASK]", "word"))


CASES: list[tuple[Callable[[Playground], None], Callable[[Any], list[str]]]] = [
    (plain, fill_lines),
    (words, fill_lines),
    (targets, lambda answer: fill_lines(answer, "target_score")),
    (
        several,
        lambda answer: [
            f"{number} {line}" for number, mask in enumerate(answer, 1) for line in fill_lines(mask)
        ],
    ),
    (
        targets_of_several,
        lambda answer: [
            f"{number} {line}"
            for number, mask in enumerate(answer, 1)
            for line in fill_lines(mask, "target_score")
        ],
    ),
    (
        together,
        lambda answer: [f"{fill['score']:.4f} {fill['token_strs']}" for fill in answer],
    ),
    (
        scores,
        lambda answer: [
            f"{token['surprisal']:.1f} {token['token_str']}" for token in answer["tokens"]
        ],
    ),
]


@pytest.mark.parametrize(("set_up", "lines"), CASES, ids=[one.__name__ for one, _ in CASES])
def test_the_code_gives_what_is_shown(
    playground: Playground,
    set_up: Callable[[Playground], None],
    lines: Callable[[Any], list[str]],
    tmp_path: Path,
) -> None:
    # The test runs the code for curl, Python and JavaScript.
    if set_up is words:
        playground.page.get_by_label("read around the masks").check()
    set_up(playground)
    answer = run_curl(code_of(playground, "curl"), tmp_path)
    if set_up is scores:
        texts = [button.get_attribute("aria-label") for button in playground.tokens.all()]
        assert len(texts) == len(answer["tokens"])
    else:
        nested = answer if isinstance(answer[0], list) else [answer]
        playground.expect_fills(playground.fills, [fill for mask in nested for fill in mask])
    expected = lines(answer)
    assert run_python(code_of(playground, "Python")) == expected
    shown = run_javascript(code_of(playground, "JavaScript"))
    if set_up is together:  # each language prints lists in its own way
        expected = [line.replace("['", "[ '").replace("']", "' ]") for line in expected]
    assert shown == expected


def test_copy(playground: Playground) -> None:
    # After the copy, the button shows a confirmation.
    page = playground.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    playground.write("It's [MASK].\n")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#snippet").text_content()
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_visible()
