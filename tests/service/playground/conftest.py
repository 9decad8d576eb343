"""Fixtures: a running service, a browser, and a page of the service without errors."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.service.playground.browser import page_server, running_browser
from tests.service.playground.playground import Playground

OpenPage = Callable[..., Playground]
# allowed messages about requests that fail on purpose
_FAILED_REQUEST = "Failed to load resource"


@pytest.fixture(scope="package")
def url() -> Iterator[str]:
    """Address of a service with the built-in model."""
    with page_server() as url:
        yield url


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Headless Chromium, which runs only during the tests of this package.

    Playwright's event loop disturbs other tests until the browser is closed.
    """
    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="package")
def shared_context(browser: Browser) -> Iterator[BrowserContext]:
    """Browser context of several pages, which avoids a process per page."""
    context = new_context(browser)
    context.new_page()  # one page always exists, so that the process stays
    yield context
    context.close()


@pytest.fixture
def open_page(browser: Browser, shared_context: BrowserContext, url: str) -> Iterator[OpenPage]:
    """Function that opens pages, which must have no errors at the end of the test.

    The function `prepare` runs before the page opens. With `failing_requests`, the page may log
    failed requests. With `own_context` or with options of a browser context, the page has a
    separate context, for example for its clock or storage.
    """
    closing: list[Page | BrowserContext] = []
    complaints: list[str] = []

    def open_page(
        path: str = "/",
        prepare: Callable[[Page], object] = lambda _: None,
        *,
        failing_requests: bool = False,
        own_context: bool = False,
        url: str = url,
        **options: Any,
    ) -> Playground:
        is_own = own_context or bool(options)
        context = new_context(browser, **options) if is_own else shared_context
        page = context.new_page()
        closing.append(context if is_own else page)

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
    for one in closing:
        one.close()
    shared_context.clear_permissions()
    assert complaints == []


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """Return a Playwright context that reports violations of the page's content security policy."""
    context = browser.new_context(**options)
    context.set_default_timeout(10_000)
    context.add_init_script(
        "addEventListener('securitypolicyviolation', "
        "(event) => console.error('CSP', event.violatedDirective, event.blockedURI))"
    )
    return context


@pytest.fixture
def playground(open_page: OpenPage) -> Playground:
    """The page with the fills of its first example."""
    playground = open_page()
    playground.wait_until_answered()
    return playground


@pytest.fixture
def refusing(open_page: OpenPage) -> Playground:
    """The page with the fills of its first example. Requests of the page may fail."""
    playground = open_page(failing_requests=True)
    playground.wait_until_answered()
    return playground
