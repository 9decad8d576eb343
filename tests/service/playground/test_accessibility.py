"""Accessibility for screen readers, small screens, dark mode and reduced motion."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.service.playground.axe import AXE_CONTEXT, expect_accessible
from tests.service.playground.conftest import OTHER, OpenPage
from tests.service.playground.playground import Playground

pytestmark = pytest.mark.slow


def alternatives(playground: Playground) -> None:
    """Show the alternatives of a token."""
    playground.tokens.get_by_text("parked").click()
    expect(playground.fills).to_have_count(5)


def invalid(playground: Playground) -> None:
    """Show an error and an invalid number of fills."""
    playground.text.fill("[MASK] " * 130)
    expect(playground.problem).to_be_visible()
    playground.page.get_by_label("Fills per mask").fill("0")


def waiting(playground: Playground) -> None:
    """Let requests for scores fail as without a network."""
    playground.page.route("**/score", lambda route: route.abort())
    playground.text.fill("A text.")
    expect(playground.problem).to_be_visible()


def compared(playground: Playground) -> None:
    playground.page.locator("#other-view .fill").last.wait_for()


STATES: dict[str, tuple[str, Callable[[Playground], object]]] = {
    "several": ("text=The [MASK] barked at the [MASK] in the [MASK].", str),
    "alternatives": (
        "text=The dog parked at the mailman, who had photosynthesis of the lost arcs.",
        alternatives,
    ),
    "targets": ("mode=targets&targets=tea,sand&text=A cup of [MASK].", str),
    "invalid": ("text=A [MASK].", invalid),
    "waiting": ("text=A [MASK].", waiting),
    "comparison": ("text=A [MASK].&compare=The cat [MASK] and the [MASK] stayed.", compared),
}
MANY: dict[str, tuple[str, Callable[[Playground], object]]] = {
    "pair": ("text=A dog.&text_pair=A cat.", str),
    "both": ("model=both&text=A [MASK].", str),
    "order": ("model=ranker&mode=rank&text=A dog?&text_pair=A cat.", str),
    "words": ("model=splade&text=the cat", str),
    "entities": ("model=tagger&text=She was in Paris at the City.&text_pair=A mailman.", str),
    "two models": (
        f"model=both&text=A [MASK].&compare_model={OTHER}".replace("%", "%25"),
        compared,
    ),
}


@pytest.mark.parametrize("state", [*STATES, *MANY])
def test_every_state_is_for_everybody(
    open_page: OpenPage, request: pytest.FixtureRequest, state: str
) -> None:
    # In light and dark mode axe finds no error. No element is wider than a small screen.
    url = request.getfixturevalue("url" if state in STATES else "many_url")
    link, prepare = (STATES | MANY)[state]
    playground = open_page(f"/#{link}", url=url, failing_requests=True, **AXE_CONTEXT)
    prepare(playground)
    expect_accessible(playground.page)
    playground.expect_to_fit()


def test_structure_as_it_is_read_out(open_page: OpenPage, many_url: str) -> None:
    # Screen readers find landmarks, headings and groups with names.
    playground = open_page("/#model=both&mode=token&text=The [MASK] barked.", url=many_url)
    expect(playground.page.locator("body")).to_match_aria_snapshot(
        """
        - banner:
          - heading "fillmask" [level=1]
          - paragraph:
            - combobox "Model"
          - navigation "Service":
            - link "API docs"
            - button "Switch to the dark theme"
        - main:
          - region "Text":
            - group "Try":
              - button "One mask"
            - textbox "Text with masks"
            - textbox "Second text, optional"
            - form "Options":
              - group "Result":
                - radio "Tokens" [checked]
                - radio "Whole words"
                - radio "Your words"
                - radio "Together"
                - radio "Labels"
              - spinbutton "Fills per mask"
              - checkbox "Above 32 tokens, read around the masks"
          - region "Fills":
            - heading "Fills" [level=2]
            - list "Fills":
              - listitem:
                - button /[\\d.]+ %/
          - region "The request as code":
            - heading "The request as code" [level=2]
            - group "The request as code":
              - radio "curl" [checked]
              - radio "Python"
              - radio "JavaScript"
            - group "The request as code": /curl/
        - contentinfo
        """
    )


def test_theme_and_motion(open_page: OpenPage) -> None:
    # The default is the system's theme. The page stores only a choice of the other theme. Bars do
    # not move for visitors who prefer reduced motion.
    ground = "getComputedStyle(document.body).backgroundColor"
    page = open_page(color_scheme="dark", reduced_motion="reduce").page
    bar = page.locator(".bar").first
    assert bar.evaluate("(bar) => getComputedStyle(bar).transitionDuration") == "0s"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Switch to the light theme").click()
    light = page.evaluate(ground)
    assert light != dark
    page.reload()
    assert page.evaluate(ground) == light
    page.get_by_role("button", name="Switch to the dark theme").click()
    assert page.evaluate(ground) == dark
    page.emulate_media(color_scheme="light")  # a choice equal to it is not stored
    assert page.evaluate(ground) == light
