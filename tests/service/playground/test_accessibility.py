"""Accessibility for screen readers, small screens, dark mode and reduced motion."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.service.playground.axe import AXE_CONTEXT, expect_accessible
from tests.service.playground.conftest import OpenPage
from tests.service.playground.playground import Playground

pytestmark = pytest.mark.slow


def several(playground: Playground) -> None:
    """Show several masks, with the pointer on a fill of the second mask."""
    playground.write("The [MASK] barked at the [MASK] in the [MASK].")
    playground.fills_of(2).nth(1).hover()


def alternatives(playground: Playground) -> None:
    """Show tokens of every level of surprisal and the alternatives of a token."""
    playground.write("The dog parked at the mailman, who had photosynthesis of the lost arcs.")
    playground.tokens.get_by_text("parked").click()
    expect(playground.fills).to_have_count(5)


def refused(playground: Playground) -> None:
    """Show an error and an invalid number of fills."""
    playground.text.fill("[MASK] " * 130)
    expect(playground.problem).to_be_visible()
    playground.page.get_by_label("Fills per mask").fill("0")


def waiting(playground: Playground) -> None:
    """Let requests for scores fail as without a network."""
    playground.page.route("**/score", lambda route: route.abort())
    playground.text.fill("A text.")
    expect(playground.problem).to_be_visible()


STATES: list[Callable[[Playground], None]] = [
    several, alternatives, refused, waiting,
]  # fmt: skip


def test_every_state_is_for_everybody(open_page: OpenPage) -> None:
    # In light and dark mode axe finds no error. No element is wider than a small screen.
    playground = open_page(failing_requests=True, **AXE_CONTEXT)
    for state in STATES:
        playground.page.unroute_all()
        playground.page.get_by_role("button", name="One mask").click()
        playground.wait_until_answered()
        state(playground)
        expect_accessible(playground.page)
        playground.expect_to_fit()


def test_structure_as_it_is_read_out(playground: Playground) -> None:
    # Screen readers find landmarks, headings and groups with names.
    playground.write("The [MASK] barked.")
    expect(playground.page.locator("body")).to_match_aria_snapshot(
        """
        - banner:
          - heading "fillmask" [level=1]
          - navigation "Service":
            - link "API docs"
            - button "Switch to the dark theme"
        - main:
          - region "Text":
            - group "Try":
              - button "One mask"
            - textbox "Text with masks"
            - form "Options":
              - group "Fill each mask with":
                - radio "Tokens" [checked]
                - radio "Whole words"
                - radio "Your words"
                - radio "Together"
              - spinbutton "Fills per mask"
              - checkbox "Above 256 tokens, read around the masks"
          - region "Fills":
            - heading "Fills" [level=2]
            - list "Fills":
              - listitem:
                - button /dog/
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


def test_answers_are_announced(playground: Playground) -> None:
    # The page announces the result in one sentence, after a pause in typing.
    announcer = playground.page.locator("#announcer")
    text = "The [MASK] barked."
    playground.write(text)
    best = playground.service_fills(text)[0]
    expect(announcer).to_have_text(f"Best: {best['token_str']}, {best['score'] * 100:.2f} %.")
    playground.write("The dog barked.")
    expect(announcer).to_have_text(
        re.compile(r"Pseudo-perplexity [\d.,]+; most surprising: \w+, [\d.]+ bits\.")
    )
    assert announcer.get_attribute("role") == "status"


def test_theme(open_page: OpenPage, url: str) -> None:
    # The default is the system's theme. The page stores only a choice of the other theme.
    ground = "getComputedStyle(document.body).backgroundColor"
    playground = open_page(color_scheme="dark")
    page = playground.page
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


def test_without_motion(open_page: OpenPage) -> None:
    # Bars do not move for visitors who prefer reduced motion.
    playground = open_page(reduced_motion="reduce")
    playground.wait_until_answered()
    bar = playground.page.locator(".bar").first
    assert bar.evaluate("(bar) => getComputedStyle(bar).transitionDuration") == "0s"
