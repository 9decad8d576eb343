"""Actions and checks on the playground's page."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Locator, Page, Request, ViewportSize, expect

SCREEN = ViewportSize(width=1280, height=720)
WIDTHS = (320, 390)
MINUS = "\N{MINUS SIGN}"


def inputs_of(request: Request) -> str:
    """Return the text that a request of the page contains."""
    return str(json.loads(request.post_data or "")["inputs"])


@dataclass(frozen=True)
class Playground:
    """Page object of the playground.

    Attributes:
        headers: headers of the requests that `ask` sends to the service.
    """

    page: Page
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> Locator:
        """The text field."""
        return self.page.get_by_role("textbox", name="Text with masks")

    @property
    def fills(self) -> Locator:
        """The buttons of all fills."""
        return self.page.locator("#view .fill")

    @property
    def tokens(self) -> Locator:
        """The buttons of the tokens of a scored text."""
        return self.page.locator("#view .token")

    @property
    def problem(self) -> Locator:
        """The error message below the text."""
        return self.page.locator("#problem span")

    def fills_of(self, number: int) -> Locator:
        """Return the buttons of the fills of a mask. Masks count from 1."""
        return self.page.get_by_role("list", name=f"Fills of mask {number}").get_by_role("button")

    @property
    def announcer(self) -> Locator:
        """The sentence for screen readers."""
        return self.page.locator("#announcer")

    def mode(self, name: str) -> None:
        """Choose what the page shows."""
        self.page.get_by_role("radio", name=name).check()

    def choose_model(self, name: str) -> None:
        """Choose a model and wait for the response."""
        menu = self.page.get_by_role("banner").get_by_role("combobox", name="Model")
        menu.select_option(name)
        self.wait_until_answered()

    def write(self, text: str) -> None:
        """Replace the text and wait for the service's response."""
        self.text.fill(text)
        self.wait_until_answered()

    def wait_until_answered(self) -> None:
        """Wait until the page shows the results of the current text."""
        self.page.locator("#view > :is(.lists, .score):not(.stale)").wait_for()

    def open_copied_link(self) -> str:
        """Copy the link of the page, open the link, and return it after the service's response."""
        link = self.copy("Copy link")
        self.page.goto("about:blank")
        self.page.goto(link)
        self.wait_until_answered()
        return link

    def copy(self, name: str) -> str:
        """Copy with a button, which must confirm it, and return the text in the clipboard."""
        self.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page.get_by_role("button", name=name, exact=True).click()
        expect(self.page.get_by_role("button", name="Copied")).to_be_visible()
        return str(self.page.evaluate("navigator.clipboard.readText()"))

    def later_inputs(self) -> list[str]:
        """Return a list that receives the text of each later request of the page."""
        asked: list[str] = []
        self.page.on("request", lambda request: asked.append(inputs_of(request)))
        return asked

    def stop_clock(self) -> None:
        """Stop the clock of the page, which must have a context of its own."""
        self.page.clock.install(time=0)
        self.page.clock.pause_at(3_600_000)

    def ask(self, path: str, body: dict[str, Any]) -> Any:
        """Send a request directly to the service and return its response.

        On a busy machine the requests of several pages may overload the service.
        """
        for _ in range(5):
            # without httpx, whose clients each take 50 ms of CPU to read certificates
            answer = self.page.request.post(
                f"{self.url}/{path}", data=body, headers=dict(self.headers)
            )
            if answer.status != 429:
                break
            time.sleep(int(answer.headers["retry-after"]))
        assert answer.status == 200, answer.text()
        return answer.json()

    def service_fills(self, text: str, path: str = "fill-mask", **parameters: Any) -> Any:
        """Return the service's fills for a text, as many as the page shows."""
        return self.ask(path, {"inputs": text, "parameters": {"top_k": 5, **parameters}})

    def expect_to_fit(self) -> None:
        """Check that the page fits the width of each screen in WIDTHS."""
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 700})
            assert self.page.evaluate("document.documentElement.scrollWidth") == width
        self.page.set_viewport_size(SCREEN)

    def expect_fills(self, buttons: Locator, fills: list[dict[str, Any]]) -> None:
        """Check that the buttons show the service's fills in order."""
        shares = [fill.get("target_score", fill["score"]) for fill in fills]
        words = [" ".join(fill.get("token_strs", [fill["token_str"]])) for fill in fills]
        expect(buttons.locator(".words")).to_have_text(words)
        expect(buttons.locator(".value")).to_have_text([percent(share) for share in shares])


def percent(share: float) -> str:
    """Format a probability as the page does."""
    if share >= 1e-4:
        return f"{share * 100:.2f} %"
    mantissa, exponent = f"{share * 100:.1e}".split("e")
    if int(exponent) >= -4:
        return f"{float(f'{share * 100:.2g}')} %"
    return f"{mantissa}e{MINUS}{-int(exponent)} %"
