"""Screenshots of the playground for docs/.

Run this module with `python -m tests.service.playground.screenshots`.
"""

import tempfile
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import Browser, ViewportSize

from tests.service.classifiers import ANSWERS, QUESTION, write_taught_classifier
from tests.service.playground.browser import ROOT, page_server, running_browser
from tests.service.playground.playground import Playground

PORT = "8000"  # as in the documentation's examples
SIZE = ViewportSize(width=1200, height=760)


class Picture(NamedTuple):
    """A page after a link and a click."""

    file: str
    scheme: Literal["light", "dark"]
    link: dict[str, str]
    click: str = "#results-title"


PICTURES = [
    Picture(
        "playground-light.png",
        "light",
        {"text": "The [MASK] barked at the [MASK]."},
        "[value=python]",
    ),
    Picture(
        "playground-surprisal.png",
        "light",
        {"text": "The dog parked at the mailman."},
        ".token:text('parked')",
    ),
    Picture(
        "playground-comparison.png",
        "dark",
        {
            "text": "The key to the cabinets [MASK] lost.",
            "compare": "The keys to the cabinet [MASK] lost.",
        },
    ),
]
LABELS = [
    Picture(
        "playground-labels.png", "light", {"text": QUESTION, "text_pair": "Rome is the capital."}
    )
]


def take(browser: Browser, url: str, picture: Picture) -> None:
    """Take a screenshot with a high resolution."""
    context = browser.new_context(
        viewport=SIZE,
        color_scheme=picture.scheme,
        device_scale_factor=1.5,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{url}/#{urlencode(picture.link)}")
    Playground(page, url).wait_until_answered()
    page.locator(picture.click).click()
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=ROOT / "docs" / picture.file, full_page=True)
    context.close()


def main() -> None:
    """Take all screenshots, with the built-in model and with a model that classifies."""
    with running_browser() as browser, tempfile.TemporaryDirectory() as scratch:
        bundle = write_taught_classifier(Path(scratch) / "answers", ANSWERS)
        for pictures, flags in ((PICTURES, []), (LABELS, ["--bundle", str(bundle)])):
            with page_server("--port", PORT, *flags) as url:
                for picture in pictures:
                    take(browser, url, picture)


if __name__ == "__main__":
    main()
