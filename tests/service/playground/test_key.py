"""API keys that visitors enter. The page sends them with requests and never stores them."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Request, expect

from tests.service.playground.axe import AXE_CONTEXT, expect_accessible
from tests.service.playground.browser import page_server
from tests.service.playground.conftest import OpenPage
from tests.service.playground.playground import Playground, inputs_of
from tests.service.playground.snippets import (
    code_of,
    run_curl,
    run_in_page,
    run_python,
)

pytestmark = pytest.mark.slow

KEY = "schlüssel of the shop ж 4711"
OLD_KEY = "a-key-that-is-taken-back"
TEXT = "The [MASK] barked."
WANTED = "The service requires an API key. This page keeps the key until you close the page."
REFUSED = "The API key is invalid. Enter another key."
VARIABLE = {"API_KEY": "a-key-for-programs"}
START = "Paris is the [MASK] of France."


def bearer(key: str) -> dict[str, str]:
    """Return the Authorization header with the UTF-8 bytes of a key."""
    return {"Authorization": f"Bearer {key}".encode().decode("latin-1")}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """File of API keys."""
    return tmp_path_factory.mktemp("keys") / "keys"


@pytest.fixture(scope="module")
def keyed_url(keys: Path) -> Iterator[str]:
    """Address of a service with three API keys, one of which a test revokes."""
    keys.write_text("\n".join([KEY, VARIABLE["API_KEY"], OLD_KEY]), encoding="utf-8")
    with page_server("--api-keys-file", str(keys)) as url:
        yield url


@pytest.fixture
def locked(open_page: OpenPage, keyed_url: str) -> Playground:
    """The page of a service with API keys, before the visitor enters a key."""
    playground = open_page(url=keyed_url, waits=True, failing_requests=True, **AXE_CONTEXT)
    expect(field(playground)).to_be_visible()
    return replace(playground, headers=bearer(VARIABLE["API_KEY"]))


def field(playground: Playground) -> Locator:
    """Return the input field of the key."""
    return playground.page.get_by_label("API key")


def sentence(playground: Playground) -> Locator:
    """Return the message about the key."""
    return playground.page.locator("#key-problem")


def give(playground: Playground, key: str) -> None:
    """Type a key into its field and press Enter."""
    field(playground).fill(key)
    field(playground).press("Enter")


def test_is_asked_for_in_place_and_goes_with_every_request(locked: Playground) -> None:
    # The test uses only the keyboard.
    expect(sentence(locked)).to_have_text(WANTED)
    expect(locked.page.get_by_role("status").filter(has_text=WANTED)).to_be_visible()
    expect(field(locked)).to_be_focused()
    expect(field(locked)).to_have_accessible_description(WANTED)
    expect(field(locked)).to_have_attribute("type", "password")
    expect(field(locked)).to_have_attribute("autocomplete", "off")
    expect(locked.problem).to_be_hidden()
    keys = []

    def hear(request: Request) -> None:
        keys.append(request.all_headers()["authorization"])

    locked.page.on("request", hear)
    locked.page.keyboard.press("Enter")  # without a key
    locked.page.keyboard.insert_text(f" {KEY} ")
    locked.page.keyboard.press("Enter")
    locked.wait_until_answered()
    expect(field(locked)).to_be_hidden()
    expect(sentence(locked)).to_be_hidden()
    expect(locked.page.get_by_role("heading", name="Fills")).to_be_focused()
    expect(locked.text).to_have_value(START)
    locked.expect_fills(locked.fills, locked.service_fills(START))
    locked.write("The dog barked.")
    locked.tokens.nth(1).click()
    locked.expect_fills(locked.fills, locked.service_fills(TEXT))
    assert keys == [bearer(KEY)["Authorization"]] * 4


def test_is_kept_nowhere(locked: Playground) -> None:
    # Browser storage, address, link and page do not contain the key.
    page = locked.page
    page.get_by_label("API key").fill(KEY)
    page.get_by_role("button", name="Use this key").click()
    locked.wait_until_answered()
    link = locked.copy("Copy link")
    state = page.context.storage_state(indexed_db=True)
    places = page.evaluate(
        """async () => [
            location.href, Object.entries(sessionStorage), history.state,
            document.documentElement.outerHTML,
            [...document.querySelectorAll("input, textarea")].map((one) => one.value),
        ]"""
    )
    assert START in places[-1]
    assert "4711" not in json.dumps([link, state, places])
    page.reload()
    expect(sentence(locked)).to_have_text(WANTED)


def test_one_that_is_refused_is_asked_for_again(locked: Playground) -> None:
    # After the rejection, the field of the key is empty and has the focus. Before and after it, axe
    # finds no error and the page fits small screens.
    expect_accessible(locked.page)
    locked.expect_to_fit()
    for wrong in ("not-one-of-the-keys", "€" * 20):
        give(locked, wrong)
        expect(sentence(locked)).to_have_text(REFUSED)
        expect(field(locked)).to_have_attribute("aria-invalid", "true")
        expect(field(locked)).to_be_focused()
        expect(field(locked)).to_have_value("")
    expect_accessible(locked.page)
    locked.expect_to_fit()
    give(locked, KEY)
    locked.wait_until_answered()
    expect(sentence(locked)).to_be_hidden()


def test_one_that_is_taken_back_while_the_page_is_open(locked: Playground, keys: Path) -> None:
    # The visitor continues to write. With a new key, the page sends the latest text.
    give(locked, OLD_KEY)
    locked.wait_until_answered()
    keys.write_text("\n".join([KEY, VARIABLE["API_KEY"]]), encoding="utf-8")
    stop_s = time.monotonic() + 20
    while httpx.get(f"{locked.url}/info", headers=bearer(OLD_KEY)).is_success:
        assert time.monotonic() < stop_s

    locked.text.fill("The [MASK]")
    expect(sentence(locked)).to_have_text(REFUSED)
    expect(locked.fills).to_have_count(0)
    expect(locked.text).to_be_focused()
    with locked.page.expect_response("**/fill-mask"):
        locked.page.keyboard.type(" barked.")
    expect(locked.text).to_have_value(TEXT)
    give(locked, KEY)
    locked.wait_until_answered()
    locked.expect_fills(locked.fills, locked.service_fills(TEXT))


def test_the_code_has_the_key_from_where_it_runs(locked: Playground) -> None:
    # The code reads the key from an environment variable.
    # In a browser the code prompts for the key.
    give(locked, KEY)
    locked.wait_until_answered()
    locked.page.on("dialog", lambda dialog: dialog.accept(VARIABLE["API_KEY"]))
    with locked.page.expect_response("**/fill-mask") as answered:
        locked.write(TEXT)
    answer = run_curl(code_of(locked, "curl"), **VARIABLE)
    assert inputs_of(answered.value.request) == TEXT
    locked.expect_fills(locked.fills, answer)
    python, javascript = code_of(locked, "Python"), code_of(locked, "JavaScript")
    printed = [f"{fill['score']:.4f} {fill['token_str']}" for fill in answer]
    assert run_python(python, **VARIABLE) == printed
    assert run_in_page(locked.page, javascript) == printed
