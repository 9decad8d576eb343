"""Fixtures: a running service, a browser, and a page of it that has nothing to complain about."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.service.playground.browser import running_browser, running_server
from tests.service.playground.playground import Playground

OpenPage = Callable[..., Playground]
# what a page may say of requests that a test has made fail
_FAILED_REQUEST = "Failed to load resource"


@pytest.fixture(scope="package")
def url() -> Iterator[str]:
    """The address of a service with the built-in model."""
    with running_server() as url:
        yield url


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Headless Chromium. Not for the whole session: its event loop would be in others' way."""
    with running_browser() as browser:
        yield browser


@pytest.fixture
def open_page(browser: Browser, url: str) -> Iterator[OpenPage]:
    """Open the playground; at the end nothing may have gone wrong in it.

    Takes the path to open, what is to be done before, whether requests may fail, and what a context
    of Playwright's takes.
    """
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(
        path: str = "/",
        prepare: Callable[[Page], object] = lambda _: None,
        *,
        failing_requests: bool = False,
        **options: Any,
    ) -> Playground:
        context = browser.new_context(**options)
        context.set_default_timeout(10_000)
        contexts.append(context)
        context.add_init_script(
            "addEventListener('securitypolicyviolation', "
            "(event) => console.error('CSP', event.violatedDirective, event.blockedURI))"
        )
        page = context.new_page()

        def hear(kind: str, text: str) -> None:
            if not (failing_requests and text.startswith(_FAILED_REQUEST)):
                complaints.append(f"{kind}: {text}")

        page.on("console", lambda message: hear(message.type, message.text))
        page.on("pageerror", lambda error: hear("error", str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(f"{url}/") else hear("request", request.url)
            ),
        )
        prepare(page)
        page.goto(url + path)
        return Playground(page, url)

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def playground(open_page: OpenPage) -> Playground:
    """The page as a visitor finds it, its first example answered."""
    playground = open_page()
    playground.wait_until_answered()
    return playground


@pytest.fixture
def refusing(open_page: OpenPage) -> Playground:
    """The same, where requests may be refused, of which the browser's console tells."""
    playground = open_page(failing_requests=True)
    playground.wait_until_answered()
    return playground
