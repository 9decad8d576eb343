"""Labels of texts and pairs, texts in order, and second texts for fills and scores."""

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.service.classifiers import LABELS
from tests.service.playground.conftest import OpenPage
from tests.service.playground.playground import Playground, percent

pytestmark = pytest.mark.slow

TEXT, SECOND = "The dog barked at the cat.", 'It\'s a "cup" of tea.'


@pytest.fixture
def labelled(open_page: OpenPage, many_url: str) -> Playground:
    """The page of a service whose default model only classifies."""
    return open_page(url=many_url)


def second(playground: Playground) -> Locator:
    """Return the field of the second text."""
    return playground.page.get_by_role("textbox", name="Second text")


def text_of(playground: Playground) -> Locator:
    """Return the text field of a model that fills no masks."""
    return playground.page.get_by_role("textbox", name="Text", exact=True)


def rows(playground: Playground, name: str = "Labels") -> Locator:
    return playground.page.get_by_role("list", name=name).get_by_role("listitem")


def expect_labels(playground: Playground, inputs: Any, path: str = "classify") -> None:
    """Check that the page shows the labels of the service's response, longest bar first."""
    [labels] = playground.ask(path, {"inputs": inputs})
    lines = [f"{label['label']} {percent(label['score'])}" for label in labels]
    expect(rows(playground)).to_have_text(lines)


def test_a_model_without_fills_opens_with_labels(labelled: Playground) -> None:
    # The page has no masks, no modes and no options for fills. An empty second text is no pair.
    page = labelled.page
    expect(page.get_by_role("heading", level=2).first).to_have_text("Labels")
    expect_labels(labelled, text_of(labelled).input_value())
    assert rows(labelled).count() == len(LABELS)
    page.wait_for_function("document.getAnimations().length === 0")
    bars = rows(labelled).locator(".bar")
    widths = bars.evaluate_all("(bars) => bars.map((bar) => bar.offsetWidth)")
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 2 * widths[-1]
    for name in ("Insert a mask", "Mask"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_role("form", name="Options").get_by_role("radio")).to_have_count(0)
    expect(page.get_by_label("Fills per mask")).to_be_hidden()
    expect(page.get_by_role("contentinfo")).to_contain_text("Labels3")
    text_of(labelled).fill(TEXT)
    second(labelled).fill(SECOND)
    expect_labels(labelled, {"text": TEXT, "text_pair": SECOND})
    second(labelled).fill(" ")
    expect_labels(labelled, TEXT)
    expect(page.get_by_role("button", name="Two texts")).to_be_visible()
    labelled.choose_model("stars")
    expect(page.get_by_role("button", name="Two texts")).to_be_hidden()
    expect(second(labelled)).to_be_hidden()


def test_a_model_with_both_tasks(labelled: Playground) -> None:
    # The mode Labels comes after the modes of fills. Arrow keys move between modes.
    page, text = labelled.page, "The [MASK] & a"
    labelled.choose_model("both")
    expect(page.get_by_role("radio", name="Labels")).to_be_checked()
    labelled.mode("Tokens")
    labelled.write(text)
    second(labelled).fill(SECOND)
    expect(labelled.fills).to_have_count(5)
    page.get_by_role("radio", name="Tokens").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("radio", name="Labels")).to_be_checked()
    expect_labels(labelled, {"text": text, "text_pair": SECOND}, "models/both/classify")
    expect(page.get_by_label("Fills per mask")).to_be_hidden()
    expect(page.get_by_label("read around the masks")).to_be_hidden()
    labelled.open_copied_link()
    expect(labelled.text).to_have_value(text)
    expect(second(labelled)).to_have_value(SECOND)
    expect(page.get_by_role("radio", name="Labels")).to_be_checked()


def test_fills_and_scores_of_a_pair(labelled: Playground) -> None:
    # A fill changes the text that contains its mask.
    labelled.choose_model("both")
    labelled.mode("Tokens")
    labelled.text.fill("the [MASK] barked")
    second(labelled).fill("a cup of [MASK]")
    pair = {"text": "the [MASK] barked", "text_pair": "a cup of [MASK]"}
    first, other = labelled.ask("models/both", {"inputs": pair})
    expect(labelled.fills_of(2)).to_have_count(5)
    labelled.expect_fills(labelled.fills_of(1), first)
    labelled.expect_fills(labelled.fills_of(2), other)
    labelled.fills_of(2).first.click()
    expect(second(labelled)).to_have_value(f"a cup of {other[0]['token_str']}")
    expect(labelled.text).to_have_value("the [MASK] barked")
    labelled.wait_until_answered()
    labelled.fills.first.click()
    labelled.wait_until_answered()
    expect(labelled.tokens.first).to_be_visible()
    names = labelled.tokens.evaluate_all("(all) => all.map((one) => one.textContent)")
    assert names[-3:] == ["cup", "of", other[0]["token_str"]]
    labelled.tokens.get_by_text("cup").click()
    expect(labelled.fills).to_have_count(5)
    labelled.fills.first.click()
    labelled.wait_until_answered()
    expect(second(labelled)).not_to_have_value(f"a cup of {other[0]['token_str']}")


def test_masks_in_the_second_text(labelled: Playground) -> None:
    # A double click, the button and the keyboard mask words in the field with the caret.
    labelled.choose_model("both")
    labelled.mode("Tokens")
    labelled.text.fill("the dog")
    second(labelled).fill("a cat")
    second(labelled).dblclick(position={"x": 40, "y": 16})
    expect(second(labelled)).to_have_value("a [MASK]")
    second(labelled).fill("a cat")
    labelled.page.keyboard.press("Alt+M")
    expect(second(labelled)).to_have_value("a [MASK]")
    labelled.page.keyboard.press("ControlOrMeta+z")
    expect(second(labelled)).to_have_value("a cat")
    labelled.page.get_by_role("button", name="Mask “cat”").click()
    expect(second(labelled)).to_have_value("a [MASK]")
    labelled.page.get_by_role("button", name="Undo").click()
    expect(second(labelled)).to_have_value("a cat")
    expect(labelled.text).to_have_value("the dog")
    labelled.text.focus()
    labelled.page.keyboard.press("Alt+M")
    expect(labelled.text).to_have_value("the [MASK]")


def test_a_reranker_wants_texts(labelled: Playground) -> None:
    # The field of the second text has another name. A reranker's label is a result too.
    page = labelled.page
    labelled.choose_model("ranker")
    labelled.page.get_by_role("radio", name="Order").check()
    field = page.get_by_role("textbox", name="Texts to order, one per line")
    field.fill("A ship.\n\nA dog.")
    expect(rows(labelled, "Texts")).to_have_count(2)
    field.fill(" \n ")
    expect(page.locator("#view")).to_contain_text("the texts to order, one per line")
    page.get_by_role("radio", name="Labels").check()
    expect(rows(labelled)).to_have_count(1)
    expect(page.get_by_role("textbox", name="Second text, optional")).to_be_visible()
