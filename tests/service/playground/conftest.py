"""Fixtures: a running service, a browser, and a page of the service without errors."""

import contextlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.service.playground.browser import page_server, running_browser
from tests.service.playground.playground import SCREEN, Playground

OpenPage = Callable[..., Playground]
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
    """Page that one test after the other uses.

    Attributes:
        page: the page, or None before its first use and after a test that failed.
    """

    pages: Pages
    page: Page | None = None


@pytest.fixture(scope="package")
def reused() -> Reused:
    """Page of the tests that need no new one, which takes half the CPU time of a test."""
    return Reused(Pages())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let no test use the page of a test that failed."""
    report = yield
    reused = getattr(item, "funcargs", {}).get("reused")
    if report.failed and isinstance(reused, Reused):
        reused.page = None
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


@contextlib.contextmanager
def reused_page(
    reused: Reused, context: BrowserContext, url: str, *, failing_requests: bool = False
) -> Iterator[Playground]:
    """Yield the page with its first example, and check that it has no errors at the end."""
    reused.pages.failing_requests = failing_requests
    if reused.page is None:
        reused.page = reused.pages.open(context, url, "/", lambda _: None)
    else:
        reused.page.unroute_all()
        reused.page.set_viewport_size(SCREEN)
        reused.page.get_by_role("tab", name="curl").click()
        reused.page.get_by_role("button", name="One mask").click()
        reused.page.evaluate("document.activeElement.blur()")
    playground = Playground(reused.page, url)
    playground.wait_until_answered()
    yield playground
    for leave in playground.leaving:
        leave()
    context.clear_permissions()
    complaints, reused.pages.complaints = reused.pages.complaints, []
    assert complaints == []


@pytest.fixture
def fresh(open_page: OpenPage) -> Playground:
    """A new page with the fills of its first example."""
    playground = open_page()
    playground.wait_until_answered()
    return playground


@pytest.fixture
def playground(reused: Reused, shared_context: BrowserContext, url: str) -> Iterator[Playground]:
    """The page with the fills of its first example, which earlier tests have used."""
    with reused_page(reused, shared_context, url) as playground:
        yield playground


@pytest.fixture
def refusing(reused: Reused, shared_context: BrowserContext, url: str) -> Iterator[Playground]:
    """The page of `playground`, whose requests may fail."""
    with reused_page(reused, shared_context, url, failing_requests=True) as playground:
        yield playground


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker run all tests of this package, which share a browser and a page."""
    for item in items:
        if item.path.parent == _HERE and item.path.name != "test_strings.py":
            item.add_marker(pytest.mark.processes)
            item.add_marker(pytest.mark.xdist_group("playground"))
