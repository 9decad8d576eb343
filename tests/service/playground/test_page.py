"""Start of the page, and what it says about the model and the response."""

import re

from playwright.sync_api import Page, Route, expect

from tests.service.playground.conftest import FIRST_EXAMPLE, OpenPage
from tests.service.playground.playground import Playground, inputs_of


def test_begins_with_an_example_and_the_facts_of_the_model(playground: Playground) -> None:
    # Name, precision and limits come from GET /models. A single model has no menu.
    expect(playground.text).to_have_value(FIRST_EXAMPLE)
    playground.expect_fills(playground.fills, playground.service_fills(FIRST_EXAMPLE))
    expect(playground.problem).to_be_hidden()
    expect(playground.page.get_by_role("banner")).to_contain_text("fillmask-minilm-en int8")
    expect(playground.page.get_by_role("combobox", name="Model")).to_have_count(0)
    facts = playground.page.get_by_role("contentinfo")
    for fact in ("256 tokens", "22,645,434", "30,522 tokens", "Apache-2.0", "English, uncased"):
        expect(facts).to_contain_text(fact)


def test_says_how_long_the_answer_took(playground: Playground) -> None:
    # The time is the service's own time, if a proxy does not remove the header.
    timing = playground.page.locator("#first-column .timing")
    expect(timing).to_have_text(re.compile(r"^Answered in \d+(\.\d)? ms on this server's CPU$"))
    answer = playground.service_fills("A [MASK].")
    headers: dict[str, str] = {}

    def through_a_proxy(route: Route) -> None:
        route.fulfill(json=answer, headers=headers)

    playground.page.route("**/fill-mask", through_a_proxy)
    for sent, text in (
        ("edge;dur=3.5, app;dur=1234.56", "Answered in 1,235 ms on this server's CPU"),
        ("app;dur=5.94", "Answered in 5.9 ms on this server's CPU"),
    ):
        headers["Server-Timing"] = sent
        playground.text.fill(f"A [MASK] {sent}.")
        expect(timing).to_have_text(text)
    headers.clear()
    playground.text.fill("A [MASK].")
    expect(timing).to_have_text(re.compile(r"^Answered in \d+(\.\d)? ms, network included$"))


def test_every_example_is_answered(playground: Playground) -> None:
    # Each example has a text and the options that it needs.
    examples = playground.page.get_by_role("group", name="Try").get_by_role("button")
    for example in examples.all():
        example.click()
        playground.wait_until_answered()
        expect(playground.problem).to_be_hidden()
    expect(playground.tokens).not_to_have_count(0)
    assert len(examples.all()) == 6


def test_works_below_a_prefix_of_a_proxy(open_page: OpenPage, url: str) -> None:
    # All addresses in the page, its modules and the code panel include the prefix.
    def behind_a_proxy(page: Page) -> None:
        page.route(
            f"{url}/some/where/**",
            lambda route: route.continue_(url=route.request.url.replace("/some/where", "")),
        )
        page.on("request", lambda request: seen.append(request.url))

    seen: list[str] = []
    playground = open_page("/some/where/", behind_a_proxy)
    assert len(seen) > 20
    assert [one for one in seen if not one.startswith(f"{url}/some/where/")] == []
    expect(playground.page.locator("#snippet")).to_contain_text(f"'{url}/some/where/fill-mask'")


def test_text_from_the_service_is_never_markup(open_page: OpenPage) -> None:
    # Model names, fills, labels and errors may contain HTML tags, or be long.
    tag = "<img src=x onerror=alert(1)>" + "x" * 300

    def hostile(page: Page) -> None:
        def models(route: Route) -> None:
            [answer] = route.fetch().json()
            tasks = [*answer["tasks"], "text-classification"]
            own = {"name": tag, "description": tag, "tasks": tasks, "labels": [tag]}
            route.fulfill(json=[{**answer, **own}])

        def fills(route: Route) -> None:
            if "refuse" in inputs_of(route.request):
                route.fulfill(status=422, json={"error": tag})
            else:
                route.fulfill(json=[{"score": 0.5, "token": 1, "token_str": tag, "sequence": tag}])

        page.route("**/models", models)
        page.route("**/fill-mask", fills)
        page.route("**/classify", lambda route: route.fulfill(json=[[{"label": tag, "score": 1}]]))

    playground = open_page("/", hostile, waits=True, failing_requests=True)
    expect(playground.fills.locator(".words")).to_have_text([tag])
    expect(playground.page.get_by_role("banner")).to_contain_text(tag)
    playground.expect_to_fit()
    playground.text.fill(f"{tag} refuse [MASK]")
    expect(playground.problem).to_contain_text(tag)
    playground.expect_to_fit()
    playground.text.fill(f"{tag} is [MASK]")
    playground.wait_until_answered()
    playground.mode("Labels")
    expect(playground.fills).to_have_text([f"{tag} 100.00 %"])
    playground.expect_to_fit()
    assert playground.page.locator("img:not([src='playground/icon.svg'])").count() == 0


def test_an_empty_text_asks_for_one(playground: Playground) -> None:
    # The page sends no request for an empty text.
    asked = playground.later_inputs()
    playground.text.fill(" \n ")
    expect(playground.page.locator("#view")).to_contain_text("Write a sentence.")
    expect(playground.page.locator("#snippet")).to_be_empty()
    expect(playground.page.get_by_role("button", name="Copy", exact=True)).to_be_disabled()
    assert asked == []


def test_copy(playground: Playground) -> None:
    # After the copy, the button shows a confirmation.
    page = playground.page
    playground.write("It's [MASK].\n")
    copied = playground.copy("Copy")
    expect(playground.announcer).to_have_text("Copied.")
    assert copied == page.locator("#snippet").text_content()
    expect(page.get_by_role("button", name="Copy", exact=True)).to_be_visible()
