"""Fixtures: running services, a browser, and pages of the services without errors."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.broken_bundles import copy_bundle, edit_description, put_hashes_right
from tests.service.classifiers import write_classifier
from tests.service.playground.browser import page_server, running_browser
from tests.service.playground.playground import Playground
from tests.service.sparse_bundles import write_sparse_bundle
from tests.service.taggers import write_tagger

OpenPage = Callable[..., Playground]
FIRST_EXAMPLE = "Paris is the [MASK] of France."
DEFAULT = "fillmask-minilm-en"
OTHER = "a company/a model whose name is long, 50 % longer than others'"
_HERE = Path(__file__).parent
# allowed messages about requests that fail on purpose
_FAILED_REQUEST = "Failed to load resource"


@pytest.fixture(scope="package")
def url() -> Iterator[str]:
    """Address of a service with the built-in model."""
    with page_server() as url:
        yield url


@pytest.fixture(scope="package")
def many_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a service with a model for each task. Its default model only classifies."""
    bundles = tmp_path_factory.mktemp("bundles")
    write_classifier(bundles / "a", name="topics")
    write_classifier(bundles / "b", name="both", fills=True)
    stars = ("stars", "length")
    write_classifier(
        bundles / "c", name="stars", labels=stars, pairs=False, problem_type="regression"
    )
    write_classifier(bundles / "d", name="ranker", labels=("relevant",))
    write_sparse_bundle(bundles / "splade")
    write_tagger(bundles / "tagger")
    copy_bundle(bundles / "e")
    put_other(bundles / "f")
    with page_server("--bundle", str(bundles), "--model", "topics") as url:
        yield url


def put_other(path: Path) -> None:
    """Add the built-in model with another name, another mask token and a lower token limit."""
    copy_bundle(path)
    for name in ("tokenizer.json", "bundle.json"):
        text = (path / name).read_text(encoding="utf-8")
        (path / name).write_text(text.replace("[MASK]", "<mask>"), encoding="utf-8")
    fields = {"name": OTHER, "description": "Another one.", "max_tokens": 100}
    edit_description(path, lambda bundle: bundle.update(fields))
    put_hashes_right(path)


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
def open_page(browser: Browser, shared_context: BrowserContext, url: str) -> Iterator[OpenPage]:
    """Function that opens pages, which must have no errors at the end of the test.

    Errors are also messages on the console and requests to other hosts. The function `prepare` runs
    before the page opens. The page shows a response, unless the test `waits` for something else.
    With `failing_requests`, the page may log failed requests. With `own_context` or with options of
    a browser context, the page has a separate context, for example for its clock or storage.
    """
    closing: list[Page | BrowserContext] = []
    complaints: list[str] = []
    allowed: list[str] = []

    def hear(kind: str, text: str) -> None:
        if not text.startswith(tuple(allowed)):
            complaints.append(f"{kind}: {text}")

    def open_page(
        path: str = "/",
        prepare: Callable[[Page], object] = lambda _: None,
        *,
        waits: bool = False,
        failing_requests: bool = False,
        own_context: bool = False,
        url: str = url,
        **options: Any,
    ) -> Playground:
        allowed.extend([f"{url}/", *[_FAILED_REQUEST] * failing_requests])
        is_own = own_context or bool(options)
        context = new_context(browser, **options) if is_own else shared_context
        page = context.new_page()
        closing.append(context if is_own else page)
        page.on("console", lambda message: hear(message.type, message.text))
        page.on("pageerror", lambda error: hear("error", str(error)))
        page.on("request", lambda request: hear("request", request.url))
        prepare(page)
        page.goto(url + path)
        playground = Playground(page, url)
        if not waits:
            playground.wait_until_answered()
        return playground

    yield open_page
    for one in closing:
        one.close()
    shared_context.clear_permissions()
    assert complaints == []


@pytest.fixture
def playground(open_page: OpenPage) -> Playground:
    """A page with the fills of its first example."""
    return open_page()


@pytest.fixture
def refusing(open_page: OpenPage) -> Playground:
    """The page of `playground`, whose requests may fail."""
    return open_page(failing_requests=True)


@pytest.hookimpl(tryfirst=True)  # before pytest reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests with the browser."""
    for item in items:
        if item.path.parent == _HERE and item.path.name != "test_strings.py":
            item.add_marker(pytest.mark.processes)
