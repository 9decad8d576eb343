"""Two texts or two models side by side."""

import json
import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.service.playground.axe import AXE_CONTEXT, expect_accessible
from tests.service.playground.conftest import OpenPage
from tests.service.playground.playground import Playground, inputs_of

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
    answered = re.compile("Answered in")
    expect(page.locator(".timing")).to_have_text([answered, answered])
    expect(page.locator("#snippet")).to_contain_text(TEXT)

    button(playground).focus()
    page.keyboard.press("Enter")
    expect(field(playground)).to_be_hidden()
    expect(page.get_by_role("heading", level=2).first).to_have_text("Fills")
    expect(page.locator("#other-column")).to_be_hidden()
    playground.expect_fills(playground.fills, own)


def test_bars_of_both_columns_have_one_scale(open_page: OpenPage) -> None:
    # Equal probabilities have bars of equal length in both columns.
    def answer(route: Route) -> None:
        shares = [0.9, 0.04] if "dog" in inputs_of(route.request) else [0.04, 0.03]
        fills = [
            {"score": share, "token": token, "token_str": "x", "sequence": "x"}
            for token, share in enumerate(shares)
        ]
        route.fulfill(json=fills)

    playground = open_page(reduced_motion="reduce")
    playground.wait_until_answered()
    playground.page.route("**/fill-mask", answer)
    compare(playground, TEXT, OTHER)
    expect(playground.page.locator("#scale")).to_have_text("Full bar: 100 %")
    widths = playground.page.locator(".bar").evaluate_all(
        "(bars) => bars.map((bar) => bar.getBoundingClientRect().width)"
    )
    assert abs(widths[1] - widths[2]) < 0.5
    assert widths[0] > 10 * widths[1]


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


def test_words_of_the_other_text_can_be_masked(playground: Playground) -> None:
    compare(playground, TEXT, "The cat went home.")
    expect(playground.page.locator("#other-view .token").first).to_be_visible()
    field(playground).evaluate("(area) => area.setSelectionRange(9, 9)")
    playground.page.keyboard.press("Alt+M")
    expect(field(playground)).to_have_value(OTHER)
    expect(playground.text).to_have_value(TEXT)
    expect(playground.page.locator("#other-view .fill")).to_have_count(5)


def test_masks_of_the_other_text_are_drawn(playground: Playground) -> None:
    # A mask has a highlight while the pointer is on one of its fills.
    compare(playground, TEXT, "The [MASK] meowed at the [MASK].")
    masks = playground.page.locator("#other-mirror .mask")
    assert [mask.get_attribute("data-number") for mask in masks.all()] == ["1", "2"]
    playground.page.locator("#other-view .fill").last.hover()
    expect(masks).to_have_class(["mask", "mask pointed"])
    expect(playground.page.locator("#mirror .mask")).to_have_class("mask")


def test_the_example_and_the_end_of_the_comparison(playground: Playground) -> None:
    # Another example ends the comparison.
    playground.page.get_by_role("button", name="Side by side").click()
    texts = ["The key to the cabinets [MASK] lost.", "The keys to the cabinet [MASK] lost."]
    expect(playground.text).to_have_value(texts[0])
    expect(field(playground)).to_have_value(texts[1])
    fills = playground.service_fills(texts[1])
    playground.expect_fills(playground.page.locator("#other-view .fill"), fills)
    playground.page.get_by_role("button", name="One mask").click()
    expect(field(playground)).to_be_hidden()
    expect(playground.page.locator("#other-view .fill")).to_have_count(0)


def test_a_link_has_the_comparison(fresh: Playground) -> None:
    compare(fresh, TEXT, OTHER)
    fresh.open_copied_link()
    expect(fresh.text).to_have_value(TEXT)
    expect(field(fresh)).to_have_value(OTHER)
    fills = fresh.service_fills(OTHER)
    fresh.expect_fills(fresh.page.locator("#other-view .fill"), fills)
    expect(fresh.page.locator("#link-problem")).to_be_hidden()


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


def test_a_model_without_the_task(open_page: OpenPage) -> None:
    # A comparison begins with a model of the same task. The menu has all models. After a model
    # without masks, the text gets the mask token of the next model.
    def with_other_models(page: Page) -> None:
        def models(route: Route) -> None:
            [answer] = route.fetch().json()
            topics = {"name": "topics", "tasks": ["text-classification"], "labels": ["a"]}
            masked = {"name": "masked", "mask_token": "<mask>"}
            route.fulfill(body=json.dumps([answer, answer | topics, answer | masked]))

        page.route("**/models", models)
        page.route("**/models/masked", lambda route: route.fulfill(json=[]))

    playground = open_page("/", with_other_models)
    playground.wait_until_answered()
    button(playground).click()
    menu = playground.page.get_by_role("combobox", name="Model to compare with")
    expect(menu).to_have_value("masked")
    field(playground).fill("The <mask>.")
    menu.select_option("topics")
    expect(playground.page.locator("#other-problem span")).to_contain_text("topics")
    expect(playground.page.locator("#other-view .fill")).to_have_count(0)
    expect(playground.page.locator("#other-column .column-model")).to_have_text("topics")
    menu.select_option("fillmask-minilm-en")
    expect(field(playground)).to_have_value("The [MASK].")


def test_everybody_can_compare(open_page: OpenPage) -> None:
    # In light and dark mode axe finds no error. Small screens show one column below the other.
    playground = open_page(**AXE_CONTEXT)
    playground.wait_until_answered()
    compare(playground, TEXT, "The cat went [MASK] and the [MASK] stayed.")
    expect_accessible(playground.page)
    playground.expect_to_fit()
    edges = "(column) => [column.offsetLeft, column.offsetTop]"
    columns = [playground.page.locator(f"#{name}-column") for name in ("first", "other")]
    for width, same in ((1280, 1), (390, 0)):
        playground.page.set_viewport_size({"width": width, "height": 700})
        first, other = (one.evaluate(edges) for one in columns)
        assert first[same] == other[same]
        assert first[1 - same] < other[1 - same]
