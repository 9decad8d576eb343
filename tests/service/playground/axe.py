"""axe, a checker of accessibility, run on an open page."""

from typing import Any

from playwright.sync_api import Page

from tests.service.playground.browser import NODE_MODULES

_AXE = NODE_MODULES / "axe-core" / "axe.min.js"
# what a page's context needs: axe comes in by the back door that bypass_csp opens
AXE_CONTEXT = {"bypass_csp": True, "reduced_motion": "reduce"}


def expect_accessible(page: Page) -> None:
    """Check names, roles, contrast and landmarks, and colours again in dark mode."""
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=_AXE)
    page.emulate_media(color_scheme="light")
    assert len(_passed(page)) > 20
    page.emulate_media(color_scheme="dark")
    assert _passed(page, runOnly=["color-contrast"]) == {"color-contrast"}


def _passed(page: Page, **options: Any) -> set[str]:
    """Return the rules that the page passes. A failed rule is an error."""
    options["resultTypes"] = ["violations"]  # of the others all nodes would take long
    result = page.evaluate("(options) => axe.run(options)", options)
    problems = [
        (one["id"], node["html"], node["failureSummary"])
        for one in result["violations"]
        for node in one["nodes"]
    ]
    assert problems == []
    return {one["id"] for one in result["passes"]}
