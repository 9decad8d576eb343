"""Fixtures: a running service, a browser, and a page of the service without errors."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.service.playground.browser import page_server, running_browser
from tests.service.playground.playground import SCREEN, Playground

OpenPage = Callable[..., Playground]
ReusePage = Callable[..., Playground]
FIRST_EXAMPLE = "Paris is the [MASK] of France."
# opens a link in a page that may already show it, and waits until the page has read it
_FOLLOW = """
(fragment) => new Promise((followed) => {
    document.activeElement.blur();
    history.replaceState(null, "", location.pathname);
    addEventListener("hashchange", () => followed(), { once: true });
    location.hash = fragment;
})
"""
_HERE = Path(__file__).parent
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


class Pages:
    """Pages of one browser, which collect complaints.

    Attributes:
        complaints: errors, messages on the console, and requests to other hosts.
        failing_requests: whether the pages may log failed requests.
    """

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.failing_requests = False

    def open(
        self, context: BrowserContext, url: str, path: str, prepare: Callable[[Page], object]
    ) -> Page:
        page = context.new_page()
        page.on("console", lambda message: self._hear(message.type, message.text))
        page.on("pageerror", lambda error: self._hear("error", str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(f"{url}/") else self._hear("request", request.url)
            ),
        )
        prepare(page)
        page.goto(url + path)
        return page

    def _hear(self, kind: str, text: str) -> None:
        if not (self.failing_requests and text.startswith(_FAILED_REQUEST)):
            self.complaints.append(f"{kind}: {text}")


@pytest.fixture
def open_page(browser: Browser, shared_context: BrowserContext, url: str) -> Iterator[OpenPage]:
    """Function that opens pages, which must have no errors at the end of the test.

    The function `prepare` runs before the page opens. With `failing_requests`, the page may log
    failed requests. With `own_context` or with options of a browser context, the page has a
    separate context, for example for its clock or storage.
    """
    closing: list[Page | BrowserContext] = []
    pages = Pages()

    def open_page(
        path: str = "/",
        prepare: Callable[[Page], object] = lambda _: None,
        *,
        failing_requests: bool = False,
        own_context: bool = False,
        url: str = url,
        **options: Any,
    ) -> Playground:
        pages.failing_requests |= failing_requests
        is_own = own_context or bool(options)
        context = new_context(browser, **options) if is_own else shared_context
        if is_own:
            closing.append(context)
        page = pages.open(context, url, path, prepare)
        if not is_own:
            closing.append(page)
        return Playground(page, url)

    yield open_page
    for one in closing:
        one.close()
    shared_context.clear_permissions()
    assert pages.complaints == []


@dataclass
class Reused:
    """Pages that one test after the other uses.

    Attributes:
        pages: the opener of the pages.
        by_url: the pages by the address of their service. A test that fails removes them.
    """

    pages: Pages
    by_url: dict[str, Page]


@pytest.fixture(scope="package")
def reused() -> Reused:
    """Pages of the tests that need no new one, which takes half the CPU time of a test."""
    return Reused(Pages(), {})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let no test use a page of a test that failed."""
    report = yield
    reused = getattr(item, "funcargs", {}).get("reused")
    if report.failed and isinstance(reused, Reused):
        reused.by_url.clear()
    return report


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
def reuse(reused: Reused, shared_context: BrowserContext) -> Iterator[ReusePage]:
    """Function that returns the page of a service after a link to a text.

    The page has the default options and has had no errors at the end of the test.
    """
    used: list[Playground] = []

    def reuse(url: str, text: str, *, failing_requests: bool = False) -> Playground:
        reused.pages.failing_requests = failing_requests
        fragment = f"#text={quote(text)}"
        page = reused.by_url.get(url)
        if page is None:
            page = reused.pages.open(shared_context, url, f"/{fragment}", lambda _: None)
            reused.by_url[url] = page
        else:
            page.unroute_all()
            page.set_viewport_size(SCREEN)
            page.get_by_role("radio", name="curl").check()
            page.evaluate(_FOLLOW, fragment)
        playground = Playground(page, url)
        playground.wait_until_answered()
        used.append(playground)
        return playground

    yield reuse
    for playground in used:
        for leave in playground.leaving:
            leave()
    shared_context.clear_permissions()
    complaints, reused.pages.complaints = reused.pages.complaints, []
    assert complaints == []


@pytest.fixture
def fresh(open_page: OpenPage) -> Playground:
    """A new page with the fills of its first example."""
    playground = open_page()
    playground.wait_until_answered()
    return playground


@pytest.fixture
def playground(reuse: ReusePage, url: str) -> Playground:
    """The page with the fills of its first example, which earlier tests have used."""
    return reuse(url, FIRST_EXAMPLE)


@pytest.fixture
def refusing(reuse: ReusePage, url: str) -> Playground:
    """The page of `playground`, whose requests may fail."""
    return reuse(url, FIRST_EXAMPLE, failing_requests=True)


@pytest.hookimpl(tryfirst=True)  # before pytest reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests with the browser."""
    for item in items:
        if item.path.parent == _HERE and item.path.name != "test_strings.py":
            item.add_marker(pytest.mark.processes)
