"""Screenshots of the playground for docs/.

Run this module with `python -m tests.service.playground.screenshots`.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, ViewportSize

from tests.service.classifiers import ANSWERS, QUESTION, write_taught_classifier
from tests.service.playground.browser import ROOT, page_server, running_browser
from tests.service.playground.playground import Playground

# the port in the documentation's examples
PORT = "8000"
SIZE = ViewportSize(width=1200, height=760)


def fills(playground: Playground) -> None:
    """Show two masks and the bars of their fills."""
    playground.write("The [MASK] barked at the [MASK].")
    playground.page.get_by_role("button", name="Insert a mask").wait_for()
    playground.page.get_by_role("radio", name="Python").check()


def surprisal(playground: Playground) -> None:
    """Show a text without masks and the alternatives of a token."""
    playground.page.get_by_role("button", name="Surprisal").click()
    playground.wait_until_answered()
    playground.tokens.get_by_text("parked").click()
    playground.fills.last.wait_for()


def comparison(playground: Playground) -> None:
    """Show the fills of two sentences side by side."""
    playground.page.get_by_role("button", name="Side by side").click()
    playground.wait_until_answered()
    playground.page.locator("#other-view .fill").last.wait_for()


def labels(playground: Playground) -> None:
    """Show the labels of a pair of texts."""
    playground.page.get_by_role("textbox", name="Text", exact=True).fill(QUESTION)
    playground.page.get_by_role("textbox", name="Second text").fill("Rome is the capital.")
    playground.wait_until_answered()


Scheme = Literal["light", "dark"]

PICTURES: dict[str, tuple[Scheme, Callable[[Playground], None]]] = {
    "playground-light.png": ("light", fills),
    "playground-surprisal.png": ("light", surprisal),
    "playground-comparison.png": ("dark", comparison),
}
LABELS: dict[str, tuple[Scheme, Callable[[Playground], None]]] = {
    "playground-labels.png": ("light", labels),
}


@contextmanager
def opened(browser: Browser, url: str, scheme: Scheme) -> Iterator[Playground]:
    """Open the page with a high resolution for screenshots."""
    context = browser.new_context(
        viewport=SIZE, color_scheme=scheme, device_scale_factor=1.5, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(url)
    playground = Playground(page, url)
    playground.wait_until_answered()
    yield playground
    context.close()


def take() -> None:
    """Take all screenshots, with the built-in model and with a model that classifies."""
    with running_browser() as browser, tempfile.TemporaryDirectory() as scratch:
        bundle = write_taught_classifier(Path(scratch) / "answers", ANSWERS)
        for pictures, flags in ((PICTURES, []), (LABELS, ["--bundle", str(bundle)])):
            with page_server("--port", PORT, *flags) as url:
                for name, (scheme, set_up) in pictures.items():
                    with opened(browser, url, scheme) as playground:
                        set_up(playground)
                        playground.page.mouse.move(0, 0)
                        playground.page.evaluate("document.activeElement.blur()")
                        playground.page.screenshot(path=ROOT / "docs" / name, full_page=True)


if __name__ == "__main__":
    take()
