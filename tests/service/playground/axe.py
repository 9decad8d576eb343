"""Accessibility checks of an open page with axe."""

from typing import Any

from playwright.sync_api import Page

from tests.service.playground.browser import NODE_MODULES

_AXE = NODE_MODULES / "axe-core" / "axe.min.js"
# options of a browser context: axe must bypass the page's content security policy
AXE_CONTEXT = {"bypass_csp": True, "reduced_motion": "reduce"}


def expect_accessible(page: Page) -> None:
    """Check the page in light mode with axe and its contrast in dark mode."""
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=_AXE)
    page.emulate_media(color_scheme="light")
    assert len(_passed(page)) > 20
    page.emulate_media(color_scheme="dark")
    assert _passed(page, runOnly=["color-contrast"]) == {"color-contrast"}


def _passed(page: Page, **options: Any) -> set[str]:
    """Return the rules that the page passes.

    Raises:
        AssertionError: the page breaks a rule.
    """
    options["resultTypes"] = ["violations"]  # listing the nodes of other results takes long
    result = page.evaluate("(options) => axe.run(options)", options)
    problems = [
        (one["id"], node["html"], node["failureSummary"])
        for one in result["violations"]
        for node in one["nodes"]
    ]
    assert problems == []
    return {one["id"] for one in result["passes"]}
