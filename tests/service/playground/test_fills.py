"""Fills in the page's lists and their insertion into the text."""

import pytest
from playwright.sync_api import expect

from tests.service.playground.playground import Playground

CITY = "He lives in [MASK] [MASK], California."


def test_several_masks_have_a_list_each(playground: Playground) -> None:
    # A click on a fill fills one mask. The page then requests new fills for the other mask.
    text = "The [MASK] barked at the [MASK]."
    playground.write(text)
    first, second = playground.service_fills(text)
    playground.expect_fills(playground.fills_of(1), first)
    playground.expect_fills(playground.fills_of(2), second)
    headings = playground.page.get_by_role("heading", level=3)
    expect(headings).to_have_text(
        ["Mask 1The  barked at the ___.", "Mask 2The ___ barked at the ."]
    )

    playground.fills_of(2).nth(0).click()
    expect(playground.text).to_have_value(second[0]["sequence"])
    playground.wait_until_answered()
    playground.expect_fills(playground.fills, playground.service_fills(second[0]["sequence"]))


def test_bars_of_all_masks_have_one_scale(playground: Playground) -> None:
    # The length of a bar is the fill's probability divided by the probability of a full bar.
    playground.write(CITY)
    shares = [fill["score"] for fills in playground.service_fills(CITY) for fill in fills]
    expect(playground.page.locator("#scale")).to_have_text("Full bar: 50 %")
    expect(playground.fills).to_have_count(10)
    playground.page.wait_for_function("document.getAnimations().length === 0")
    lengths = playground.fills.evaluate_all(
        """(fills) => fills.map((fill) => {
            const room = fill.getBoundingClientRect().width - 88; // of the figure
            return fill.querySelector(".bar").getBoundingClientRect().width / room;
        })"""
    )
    assert lengths == pytest.approx([share / 0.5 for share in shares], abs=0.01)


@pytest.mark.parametrize("words", [300, 4000])
def test_the_error_of_a_long_text_has_a_remedy(refusing: Playground, words: int) -> None:
    # The button of the error repeats the request with windows. The focus goes to the results.
    # The service reports the characters of a very long text, and otherwise its tokens.
    text = "very " * words + "[MASK]."
    refusing.text.fill(text)
    button = refusing.page.get_by_role("button", name="Read around the masks")
    button.focus()
    hint = "Double-click a word to mask it."
    error = refusing.problem.text_content()
    expect(refusing.text).to_have_accessible_description(f"{error} {hint}")
    refusing.page.keyboard.press("Enter")
    refusing.wait_until_answered()
    fills = refusing.service_fills(text, on_long_text="window")
    refusing.expect_fills(refusing.fills, fills)
    start, end = fills[0]["window"]
    expect(refusing.page.locator(".window")).to_have_text(
        f"The model reads characters {start:,} to {end:,}."
    )
    expect(refusing.page.get_by_label("Above 256 tokens")).to_be_checked()
    expect(refusing.problem).to_be_hidden()
    expect(refusing.text).to_have_accessible_description(hint)
    expect(button).to_be_hidden()
    expect(refusing.page.get_by_role("heading", name="Fills")).to_be_focused()
