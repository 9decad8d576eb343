"""Page after failed requests and while it waits for the service."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.service.playground.conftest import OpenPage
from tests.service.playground.playground import Playground

TEXT = "The [MASK] barked."
BUSY = "Too much is waiting."


def refuse(status: int, sentence: str, **headers: str) -> Callable[[Route], None]:
    """Return a route handler that answers every request with an error."""
    return lambda route: route.fulfill(status=status, json={"error": sentence}, headers=headers)


def test_a_request_that_is_not_done(refusing: Playground) -> None:
    # The service's message is the accessible description of the text field.
    # The page removes the fills of the previous text.
    masks = "[MASK] " * 129
    refusing.text.fill(masks)
    expect(refusing.problem).to_have_text(
        "The request must have at most 128 masks (got 129); send fewer or raise FILLMASK_MAX_MASKS."
    )
    expect(refusing.page.locator("#problem")).to_have_attribute("data-kind", "error")
    expect(refusing.text).to_have_attribute("aria-invalid", "true")
    expect(refusing.text).to_have_accessible_description(
        "The request must have at most 128 masks (got 129); send fewer or raise "
        "FILLMASK_MAX_MASKS. Double-click a word to mask it."
    )
    expect(refusing.page.locator("#view")).to_have_text("There is no result for this text.")
    expect(refusing.page.locator(".timing")).to_have_text(["", ""])
    expect(refusing.page.get_by_role("button", name="Read around the masks")).to_have_count(0)
    expect(refusing.page.locator("#snippet")).to_contain_text("[MASK] [MASK] [MASK]")
    refusing.write(TEXT)
    expect(refusing.problem).to_be_hidden()
    expect(refusing.text).not_to_have_attribute("aria-invalid", "true")
    refusing.expect_fills(refusing.fills, refusing.service_fills(TEXT))


def test_an_overloaded_service_is_asked_once_more(open_page: OpenPage) -> None:
    # The page waits for the time in Retry-After and shows the remaining time.
    refusing = open_page(failing_requests=True, own_context=True)
    asked: list[Route] = []

    def overloaded(route: Route) -> None:
        asked.append(route)
        if len(asked) == 1:
            refuse(429, BUSY, **{"Retry-After": "2"})(route)
        else:
            route.continue_()

    refusing.stop_clock()
    refusing.page.route("**/fill-mask", overloaded)
    refusing.text.fill(TEXT)
    refusing.page.clock.run_for(500)
    expect(refusing.problem).to_have_text(f"{BUSY} The page tries again in 2 s.")
    expect(refusing.page.locator("#problem")).to_have_attribute("data-kind", "notice")
    refusing.page.clock.run_for(1500)
    assert len(asked) == 1
    refusing.page.clock.run_for(600)
    refusing.expect_fills(refusing.fills, refusing.service_fills(TEXT))
    expect(refusing.problem).to_be_hidden()
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"status": 500, "json": {"error": "Internal error."}}, "Internal error."),
        ({"status": 429, "json": {"error": BUSY}}, BUSY),  # after another try
        (
            {"status": 502, "body": "<h1>Bad Gateway</h1>"},
            "The response with status 502 is not from the service; check the proxy.",
        ),
    ],
)
def test_a_failure_may_be_asked_about_again(
    refusing: Playground, answer: dict[str, Any], sentence: str
) -> None:
    # The page shows the service's message, or only the status of a proxy's error page.
    # The page does not mark the text as invalid.
    refusing.page.route("**/fill-mask", lambda route: route.fulfill(**answer))
    refusing.text.fill(TEXT)
    expect(refusing.problem).to_have_text(sentence)
    expect(refusing.page.locator("#view")).to_have_text("There is no result for this text.")
    expect(refusing.text).not_to_have_attribute("aria-invalid", "true")
    refusing.page.unroute("**/fill-mask")
    refusing.page.get_by_role("button", name="Try again").click()
    refusing.expect_fills(refusing.fills, refusing.service_fills(TEXT))
    expect(refusing.page.get_by_role("heading", name="Fills")).to_be_focused()


def test_a_service_that_starts(open_page: OpenPage) -> None:
    # The page sends the latest text as soon as the service is ready.
    starting = {"is": True}

    def start(page: Page) -> None:
        def answer(route: Route) -> None:
            if starting["is"]:
                refuse(503, "The service is starting; wait until it is ready.")(route)
            else:
                route.continue_()

        page.route("**/models", answer)
        page.route("**/health/ready", answer)

    playground = open_page("/", start, waits=True, failing_requests=True)
    expect(playground.problem).to_have_text(
        "The service is starting; wait until it is ready. "
        "The page tries again as soon as the service is ready."
    )
    mask = playground.page.locator("#mask")
    expect(mask).to_have_attribute("aria-disabled", "true")  # the mask token is unknown
    playground.text.fill(TEXT)
    with playground.page.expect_response("**/health/ready"):
        pass
    starting["is"] = False
    playground.wait_until_answered()
    expect(playground.problem).to_be_hidden()
    playground.expect_fills(playground.fills, playground.service_fills(TEXT))
    expect(mask).not_to_have_attribute("aria-disabled", "true")


def test_a_network_that_is_lost(refusing: Playground) -> None:
    # The page sends the latest text when the network returns.
    page = refusing.page
    for path in ("**/fill-mask", "**/health/ready"):
        page.route(path, lambda route: route.abort("connectionrefused"))
    refusing.text.fill(TEXT)
    expect(refusing.problem).to_have_text(
        "The service is unreachable. The page tries again every second."
    )
    expect(refusing.page.locator("#view")).to_have_text("There is no result for this text yet.")
    refusing.text.fill(f"{TEXT} It [MASK].")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/ready")):
        pass
    page.unroute_all()
    refusing.wait_until_answered()
    expect(refusing.problem).to_be_hidden()
    first, second = refusing.service_fills(f"{TEXT} It [MASK].")
    refusing.expect_fills(refusing.fills_of(1), first)
    refusing.expect_fills(refusing.fills_of(2), second)


def test_an_answer_that_comes_too_late_is_dropped(playground: Playground) -> None:
    # Responses may arrive in a different order. Visitors cannot choose outdated fills.
    held: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    playground.page.route("**/fill-mask", hold_the_first)
    with playground.page.expect_request("**/fill-mask") as first:
        playground.text.fill("The cat [MASK].")
    playground.fills.first.click()  # of the previous text
    expect(playground.text).to_have_value("The cat [MASK].")
    playground.write(TEXT)
    fills = playground.service_fills(TEXT)
    playground.expect_fills(playground.fills, fills)
    assert first.value.failure is not None  # aborted
    held[0].fulfill(json=playground.service_fills("The cat [MASK]."))
    playground.expect_fills(playground.fills, fills)
    expect(playground.text).to_have_value(TEXT)


@pytest.mark.parametrize("status", [422, 500])
def test_errors_of_alternatives(refusing: Playground, status: int) -> None:
    refusing.write("The dog barked.")
    refusing.page.route("**/fill-mask", refuse(status, "Not this one."))
    refusing.tokens.nth(1).click()
    panel = refusing.page.get_by_role("region", name="Instead of “dog”")
    expect(panel).to_contain_text("Not this one.")
    expect(panel.get_by_role("button", name="Try again")).to_have_count(int(status == 500))
    expect(refusing.problem).to_be_hidden()
    refusing.page.unroute("**/fill-mask")
    if status == 500:
        panel.get_by_role("button", name="Try again").click()
        refusing.expect_fills(refusing.fills, refusing.service_fills(TEXT))
