"""Choice among several models and requests to the chosen model."""

from urllib.parse import quote

import pytest
from playwright.sync_api import Request, expect

from tests.service.playground.conftest import DEFAULT, OTHER, OpenPage
from tests.service.playground.playground import Playground

pytestmark = pytest.mark.slow

PATH = "models/" + quote(OTHER, safe="/'")
OWN = f"models/{DEFAULT}"
TEXT = "The [MASK] barked."
OTHER_TEXT = "The <mask> barked."
LINK = f"/#model={DEFAULT}&text={TEXT}"


@pytest.fixture
def several(open_page: OpenPage, many_url: str) -> Playground:
    """The page of a service with many models, one of which the visitor has chosen."""
    return open_page(LINK, url=many_url)


def test_another_one_is_asked_once_it_is_chosen(several: Playground) -> None:
    # The test uses the keyboard. Masks, limits and model facts are those of the chosen model.
    paths: list[str] = []

    def hear(request: Request) -> None:
        paths.append(request.url.removeprefix(f"{several.url}/"))

    several.page.on("request", hear)
    menu = several.page.get_by_role("banner").get_by_role("combobox", name="Model")
    expect(menu).to_have_value(DEFAULT)
    menu.focus()
    several.page.keyboard.type(OTHER[:3])
    several.wait_until_answered()
    expect(menu).to_be_focused()
    expect(several.text).to_have_value(OTHER_TEXT)
    expect(several.page.locator("#text-mirror .mask")).to_have_text("<mask>")
    several.expect_fills(several.fills, several.service_fills(OTHER_TEXT, PATH))
    facts = several.page.get_by_role("contentinfo")
    expect(facts).to_contain_text("Another one.")
    expect(facts).to_contain_text("100 tokens")
    expect(several.page.get_by_label("Above 100 tokens")).to_be_visible()

    several.fills.first.click()
    several.wait_until_answered()
    several.tokens.nth(1).click()
    several.expect_fills(several.fills, several.service_fills(OTHER_TEXT, PATH))
    several.page.get_by_role("button", name="One mask").click()
    several.wait_until_answered()
    expect(several.text).to_have_value("Paris is the <mask> of France.")
    several.choose_model(DEFAULT)
    expect(several.text).to_have_value("Paris is the [MASK] of France.")
    expect(facts).to_contain_text("256 tokens")
    assert paths == [PATH, f"{PATH}/score", PATH, PATH, OWN]


def test_two_models_beside_each_other(several: Playground) -> None:
    # Both models read the same text, each with its own mask token. A fill goes into this text.
    page = several.page
    page.get_by_role("button", name="Compare").click()
    menu = page.get_by_role("combobox", name="Model to compare with")
    expect(menu).not_to_have_value(DEFAULT)
    menu.select_option(OTHER)
    for name in (DEFAULT, OTHER):
        expect(page.get_by_role("group", name=name, exact=True)).to_be_visible()
    several.expect_fills(several.fills, several.service_fills(TEXT, OWN))
    others = page.locator("#other-view .fill")
    several.expect_fills(others, several.service_fills(OTHER_TEXT, PATH))
    several.text.fill("The [MASK] barked at the [MASK].")
    [_, fills] = several.service_fills("The <mask> barked at the <mask>.", PATH)
    several.expect_fills(others.nth(5).locator("xpath=ancestor::ol").get_by_role("button"), fills)
    others.nth(5).click()
    expect(several.text).to_have_value(fills[0]["sequence"].replace("<mask>", "[MASK]"))
    page.get_by_role("button", name="Undo").click()
    expect(several.text).to_have_value("The [MASK] barked at the [MASK].")

    field = page.get_by_role("textbox", name="Text to compare with")
    field.fill("Where is the <mask>?")
    several.expect_fills(others, several.service_fills("Where is the <mask>?", PATH))
    several.open_copied_link()
    expect(menu).to_have_value(OTHER)
    menu.select_option(DEFAULT)
    expect(field).to_have_value("Where is the [MASK]?")
    several.expect_fills(others, several.service_fills("Where is the [MASK]?", OWN))
    menu.select_option("topics")
    expect(page.locator("#other-problem-text")).to_have_text(
        "The model topics fills no masks; choose another model or another result."
    )
