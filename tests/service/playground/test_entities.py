"""Entities, marked in the text and listed below it."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.service.playground.conftest import OpenPage
from tests.service.playground.playground import Playground, percent

pytestmark = pytest.mark.slow

TEXT = "😀 She saw the mailman 👩‍👩‍👧 in\nParis, France & Rome!"
SECOND = "A 🐕, a mailman."
TAG = "<img src=x onerror=alert(1)>"
TINT = "(one) => getComputedStyle(one).backgroundColor"


def marks(playground: Playground) -> Locator:
    return playground.page.get_by_role("group", name="Text with its entities").locator("mark")


def expect_entities(playground: Playground, *parts: str) -> list[dict[str, Any]]:
    """Check that the marks and the list show the service's response, and return it.

    Python counts characters as the service does.
    """
    inputs = parts[0] if len(parts) == 1 else {"text": parts[0], "text_pair": parts[1]}
    found: list[dict[str, Any]] = playground.ask(
        "models/tagger/classify-tokens", {"inputs": inputs}
    )
    own = [parts[one.get("part") == "text_pair"][one["start"] : one["end"]] for one in found]
    expect(marks(playground)).to_have_text(own)
    assert playground.page.locator("#view .tokens").text_content() == "\n".join(parts)
    rows = [f"{one['word']} {one['entity_group']}{percent(one['score'])}" for one in found]
    expect(playground.fills).to_have_text(rows)
    for mark, one in zip(marks(playground).all(), found, strict=True):
        expect(mark).to_have_attribute("data-label", one["entity_group"])
        expect(mark).to_have_attribute("title", percent(one["score"]))
    return found


def test_entities_are_marked_in_their_text(open_page: OpenPage, many_url: str) -> None:
    # A model whose only task this is opens with them. Each label has its own colour.
    tagged = open_page("/#model=tagger&text=The dog.", url=many_url)
    page = tagged.page
    expect(page.get_by_role("heading", level=2).first).to_have_text("Entities")
    expect(page.get_by_role("form", name="Options").get_by_role("radio")).to_have_count(0)
    expect(page.locator("#view .list p")).to_have_text("The model finds no entities in this text.")
    expect(tagged.announcer).to_have_text("The model finds no entities in this text.")
    page.get_by_role("textbox", name="Text", exact=True).fill(TEXT)
    expect(marks(tagged).first).to_have_text("She")
    found = expect_entities(tagged, TEXT)
    labels = [one["entity_group"] for one in found]
    assert labels == ["PER", "PER", "LOC", "LOC", "LOC"]
    notes = page.locator("#view .note")
    for elements in (marks(tagged), notes):
        tints = [element.evaluate(TINT) for element in elements.all()]
        assert len(set(tints)) == len(set(zip(labels, tints, strict=True))) == 2
    assert notes.first.evaluate(TINT) == marks(tagged).first.evaluate(TINT)
    marks(tagged).first.focus()
    page.keyboard.press("ArrowRight")
    expect(marks(tagged).nth(1)).to_be_focused()
    page.get_by_role("textbox", name="Second text").fill(SECOND)
    expect(marks(tagged).last).to_have_text("mailman")
    expect_entities(tagged, TEXT, SECOND)
    tagged.open_copied_link()
    expect_entities(tagged, TEXT, SECOND)


def test_models_without_the_task_have_no_such_mode(open_page: OpenPage, many_url: str) -> None:
    playground = open_page("/#model=both&mode=entities&text=The dog.", url=many_url)
    page = playground.page
    expect(page.get_by_role("radio", name="Labels")).to_be_visible()
    expect(page.get_by_role("radio", name="Entities")).to_have_count(0)
    expect(page.locator("#link-problem")).to_contain_text("mode")
    page.goto("about:blank")
    page.goto(f"{many_url}/#model=tagger&text=The dog.&compare_model=both")
    expect(page.locator("#other-problem-text")).to_have_text(
        "The model both finds no entities; choose another model or another result."
    )


def test_texts_and_labels_are_never_markup(open_page: OpenPage, many_url: str) -> None:
    # Labels that the model's description lacks have no colour.
    entity = {"entity_group": TAG, "score": 1, "word": TAG, "start": 0, "end": len(TAG)}

    def hostile(page: Page) -> None:
        def answer(route: Route) -> None:
            route.fulfill(json=[entity])

        page.route("**/classify-tokens", answer)

    playground = open_page(f"/#model=tagger&text={TAG} Rome", hostile, url=many_url)
    expect(marks(playground)).to_have_text([TAG])
    expect(playground.page.locator("#view .tokens")).to_have_text(f"{TAG} Rome")
    expect(playground.page.locator("#view .words")).to_have_text(TAG)
    expect(playground.page.locator("#view .note")).to_have_text(TAG)
    expect(playground.announcer).to_have_text(f"Found: {TAG}, {TAG}.")
    expect(playground.page.locator("#view img")).to_have_count(0)
    playground.expect_to_fit()
