"""Labels of texts and pairs. Second texts for fills and scores."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.service.classifiers import LABELS, write_classifier
from tests.service.playground.axe import AXE_CONTEXT, expect_accessible
from tests.service.playground.browser import page_server
from tests.service.playground.conftest import OpenPage, ReusePage
from tests.service.playground.playground import Playground
from tests.service.playground.snippets import code_of, run_curl, run_javascript, run_python
from tests.service.playground.test_models import BUNDLE, choose

pytestmark = pytest.mark.slow

TEXT, SECOND = "The dog barked at the cat.", 'It\'s a "cup" of tea.'
STARS: dict[str, Any] = {"labels": ("stars", "length"), "problem_type": "regression"}


@pytest.fixture(scope="module")
def labels_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a service whose default model only classifies."""
    bundles = tmp_path_factory.mktemp("bundles")
    write_classifier(bundles / "a", name="topics")
    write_classifier(bundles / "b", name="both", fills=True)
    write_classifier(bundles / "c", name="stars", pairs=False, **STARS)
    shutil.copytree(BUNDLE, bundles / "d")
    with page_server("--bundle", str(bundles), "--model", "topics") as url:
        yield url


@pytest.fixture
def labelled(reuse: ReusePage, labels_url: str) -> Playground:
    """The page with the labels of a text, which earlier tests have used."""
    return reuse(labels_url, TEXT)


def second(playground: Playground) -> Locator:
    """Return the field of the second text."""
    return playground.page.get_by_role("textbox", name="Second text")


def text_of(playground: Playground) -> Locator:
    """Return the text field of a model that only classifies."""
    return playground.page.get_by_role("textbox", name="Text", exact=True)


def rows(playground: Playground) -> Locator:
    return playground.page.get_by_role("list", name="Labels").get_by_role("listitem")


def labels_of(playground: Playground, inputs: Any, path: str = "classify") -> list[dict[str, Any]]:
    """Return the labels in the service's response."""
    [labels] = playground.ask(path, {"inputs": inputs})
    return list(labels)


def expect_labels(playground: Playground, labels: list[dict[str, Any]]) -> None:
    """Check that the page shows these labels with their probabilities."""
    lines = [f"{label['label']} {label['score'] * 100:.2f} %" for label in labels]
    expect(rows(playground)).to_have_text(lines)


def test_a_model_without_fills_opens_with_labels(open_page: OpenPage, labels_url: str) -> None:
    # The page has no masks, no modes and no options for fills.
    labelled = open_page(url=labels_url)
    labelled.wait_until_answered()
    page = labelled.page
    expect(page.get_by_role("heading", level=2).first).to_have_text("Labels")
    expect_labels(labelled, labels_of(labelled, text_of(labelled).input_value()))
    assert rows(labelled).count() == len(LABELS)
    shares = (
        rows(labelled).locator(".bar").evaluate_all("(bars) => bars.map((bar) => bar.offsetWidth)")
    )
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 2 * shares[-1]
    for name in ("Insert a mask", "Mask"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_role("form", name="Options").get_by_role("radio")).to_have_count(0)
    expect(page.get_by_label("Fills per mask")).to_be_hidden()
    expect(page.get_by_role("contentinfo")).to_contain_text("Labels3")
    expect(page.locator("#announcer")).to_contain_text("Best: ")


def test_a_text_and_a_pair(labelled: Playground) -> None:
    # An empty second text means a single text.
    text_of(labelled).fill(TEXT)
    expect_labels(labelled, labels_of(labelled, TEXT))
    second(labelled).fill(SECOND)
    expect_labels(labelled, labels_of(labelled, {"text": TEXT, "text_pair": SECOND}))
    second(labelled).fill(" ")
    expect_labels(labelled, labels_of(labelled, TEXT))


@pytest.mark.parametrize("pair", [False, True])
def test_the_code_gives_what_is_shown(labelled: Playground, tmp_path: Path, *, pair: bool) -> None:
    text_of(labelled).fill(TEXT)
    second(labelled).fill(SECOND if pair else "")
    labelled.wait_until_answered()
    inputs: Any = {"text": TEXT, "text_pair": SECOND} if pair else TEXT
    expected = labels_of(labelled, inputs)
    expect_labels(labelled, expected)
    assert run_curl(code_of(labelled, "curl"), tmp_path) == [expected]
    lines = [f"{label['score']:.4f} {label['label']}" for label in expected]
    assert run_python(code_of(labelled, "Python")) == lines
    assert run_javascript(code_of(labelled, "JavaScript")) == lines


def test_a_model_with_both_tasks(labelled: Playground) -> None:
    # The mode Labels comes after the modes of fills. Arrow keys move between modes.
    page = labelled.page
    choose(labelled, "both")
    expect(page.get_by_role("radio", name="Labels")).to_be_checked()
    labelled.mode("Tokens")
    labelled.write("The [MASK] barked.")
    expect(labelled.fills).to_have_count(5)
    page.get_by_role("radio", name="Tokens").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("radio", name="Labels")).to_be_checked()
    labels = labels_of(labelled, "The [MASK] barked.", "models/both/classify")
    expect_labels(labelled, labels)
    expect(page.get_by_label("Fills per mask")).to_be_hidden()
    expect(page.get_by_label("read around the masks")).to_be_hidden()
    expect(page.locator("#snippet")).to_contain_text("models/both/classify")


def test_fills_and_scores_of_a_pair(labelled: Playground) -> None:
    # A fill changes the text that contains its mask.
    choose(labelled, "both")
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
    choose(labelled, "both")
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
    expect(labelled.text).to_have_value("the dog")
    labelled.text.focus()
    labelled.page.keyboard.press("Alt+M")
    expect(labelled.text).to_have_value("the [MASK]")


def test_a_link_has_both_texts_and_the_mode(open_page: OpenPage, labels_url: str) -> None:
    labelled = open_page(url=labels_url)
    labelled.wait_until_answered()
    choose(labelled, "both")
    text = "the [MASK] & a"
    labelled.text.fill(text)
    second(labelled).fill(SECOND)
    labelled.open_copied_link()
    expect(labelled.text).to_have_value(text)
    expect(second(labelled)).to_have_value(SECOND)
    expect(labelled.page.get_by_role("radio", name="Labels")).to_be_checked()


def test_labels_are_never_markup(open_page: OpenPage, labels_url: str) -> None:
    tag = "<img src=x onerror=alert(1)>"

    def hostile(page: Page) -> None:
        labels = [{"label": tag, "score": 0.75}, {"label": "x" * 300, "score": 0.25}]
        page.route("**/classify", lambda route: route.fulfill(json=[labels]))

    playground = open_page("/", hostile, url=labels_url)
    expect(rows(playground).first).to_have_text(f"{tag} 75.00 %")
    playground.expect_to_fit()


def test_everybody_can_read_labels(open_page: OpenPage, labels_url: str) -> None:
    # In light and dark mode axe finds no error. No element is wider than a small screen.
    playground = open_page(url=labels_url, **AXE_CONTEXT)
    playground.wait_until_answered()
    second(playground).fill(SECOND)
    playground.wait_until_answered()
    expect_accessible(playground.page)
    playground.expect_to_fit()
    choose(playground, "both")
    expect_accessible(playground.page)
    playground.expect_to_fit()
    expect(playground.page.locator("main")).to_match_aria_snapshot(
        """
        - main:
          - region "Text":
            - textbox "Text with masks"
            - textbox "Second text, optional"
            - form "Options":
              - group "Result":
                - radio "Labels" [checked]
          - region "Labels":
            - heading "Labels" [level=2]
            - list "Labels":
              - listitem: /\\w+ [\\d.]+ %/
        """
    )
