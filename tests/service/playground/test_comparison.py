"""Two texts or two models side by side."""

import pytest
from playwright.sync_api import Locator, expect

from tests.service.playground.playground import Playground

pytestmark = pytest.mark.slow

TEXT, OTHER = "The dog [MASK] home.", "The cat [MASK] home."
LONG = "very " * 300 + "[MASK]."


def button(playground: Playground) -> Locator:
    """Return the button that begins and ends a comparison."""
    return playground.page.get_by_role("button", name="Compare")


def field(playground: Playground) -> Locator:
    """Return the field of the text to compare with."""
    return playground.page.get_by_role("textbox", name="Text to compare with")


def column(playground: Playground, name: str) -> Locator:
    """Return a column of results by its heading."""
    return playground.page.get_by_role("group", name=name, exact=True)


def compare(playground: Playground, text: str, other: str) -> None:
    """Show the results of two texts side by side."""
    playground.text.fill(text)
    button(playground).click()
    field(playground).fill(other)
    playground.wait_until_answered()
    playground.page.locator("#other-view > :is(.lists, .score):not(.stale)").wait_for()


def test_another_text_beside_the_text(playground: Playground) -> None:
    # The keyboard begins and ends the comparison. The other text begins as a copy of the text.
    page = playground.page
    playground.write(TEXT)
    button(playground).focus()
    page.keyboard.press("Enter")
    expect(field(playground)).to_be_focused()
    expect(field(playground)).to_have_value(TEXT)
    expect(column(playground, "The same text").locator(".fill")).to_have_count(5)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(OTHER)
    expect(page.get_by_role("heading", level=2).first).to_have_text("Comparison")
    own, others = playground.service_fills(TEXT), playground.service_fills(OTHER)
    playground.expect_fills(column(playground, "The dog ___ home.").locator(".fill"), own)
    playground.expect_fills(column(playground, "The cat ___ home.").locator(".fill"), others)
    summaries = [
        f"{name} column: Best: {fills[0]['token_str']}, {fills[0]['score'] * 100:.2f} %."
        for name, fills in (("First", own), ("Second", others))
    ]
    expect(page.locator("#announcer")).to_have_text(" ".join(summaries))
    expect(page.locator(".timing")).to_contain_text(["Answered in"] * 2)
    expect(page.locator("#snippet")).to_contain_text(TEXT)

    button(playground).focus()
    page.keyboard.press("Enter")
    expect(field(playground)).to_be_hidden()
    expect(page.get_by_role("heading", level=2).first).to_have_text("Fills")
    expect(page.locator("#other-column")).to_be_hidden()
    playground.expect_fills(playground.fills, own)


def test_a_fill_goes_into_the_text_of_its_column(playground: Playground) -> None:
    # The other column then shows the surprisal of its text, with alternatives to each token.
    compare(playground, TEXT, OTHER)
    fill = playground.service_fills(OTHER)[1]
    row = column(playground, "The cat ___ home.").locator(".fill").nth(1)
    row.focus()
    playground.page.keyboard.press("Enter")
    expect(field(playground)).to_have_value(fill["sequence"])
    expect(playground.text).to_have_value(TEXT)
    view = playground.page.locator("#other-view")
    token = view.locator(".token").get_by_text(fill["token_str"], exact=True)
    expect(token).to_be_focused()
    playground.page.keyboard.press("Enter")
    playground.expect_fills(view.locator(".fill"), playground.service_fills(OTHER))
    expect(playground.page.locator("#snippet")).to_contain_text(TEXT)
    field(playground).focus()
    playground.page.keyboard.press("ControlOrMeta+z")
    expect(field(playground)).to_have_value(OTHER)
    playground.open_copied_link()
    expect(playground.text).to_have_value(TEXT)
    expect(field(playground)).to_have_value(OTHER)
    playground.expect_fills(view.locator(".fill"), playground.service_fills(OTHER))
    expect(playground.page.locator("#link-problem")).to_be_hidden()


def test_an_error_of_the_other_text_stays_in_its_column(refusing: Playground) -> None:
    # The first column keeps its result. The button for long texts helps here too.
    compare(refusing, TEXT, OTHER)
    field(refusing).fill(LONG)
    problem = refusing.page.locator("#other-problem")
    expect(problem).to_contain_text("must have at most 256 tokens")
    expect(field(refusing)).to_have_attribute("aria-invalid", "true")
    expect(refusing.text).not_to_have_attribute("aria-invalid", "true")
    expect(refusing.problem).to_be_hidden()
    expect(refusing.page.locator("#other-view")).to_have_text("There is no result for this text.")
    refusing.expect_fills(refusing.fills, refusing.service_fills(TEXT))
    problem.get_by_role("button", name="Read around the masks").click()
    fills = refusing.service_fills(LONG, on_long_text="window")
    refusing.expect_fills(refusing.page.locator("#other-view .fill"), fills)
    expect(problem).to_be_hidden()
    expect(field(refusing)).not_to_have_attribute("aria-invalid", "true")


def test_columns_are_side_by_side_where_they_fit(playground: Playground) -> None:
    compare(playground, TEXT, OTHER)
    edges = "(column) => [column.offsetLeft, column.offsetTop]"
    columns = [playground.page.locator(f"#{name}-column") for name in ("first", "other")]
    for width, same in ((1280, 1), (390, 0)):
        playground.page.set_viewport_size({"width": width, "height": 700})
        first, other = (one.evaluate(edges) for one in columns)
        assert first[same] == other[same]
        assert first[1 - same] < other[1 - same]
