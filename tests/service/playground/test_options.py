"""Disabled options and invalid values."""

from playwright.sync_api import expect

from tests.service.playground.conftest import OpenPage
from tests.service.playground.playground import Playground

TEXT = "Paris is the [MASK] of France."


def test_a_number_that_is_not_allowed(playground: Playground) -> None:
    # The page sends nothing until the number is valid.
    asked = playground.later_inputs()
    number = playground.page.get_by_label("Fills per mask")
    for wrong in ("0", "101", "", "2.5"):
        number.fill(wrong)
        expect(playground.page.get_by_text("a whole number from 1 to 100.")).to_be_visible()
        expect(number).to_have_attribute("aria-invalid", "true")
        expect(playground.fills).to_have_count(0)
    assert asked == []
    number.fill("2")
    expect(playground.fills).to_have_count(2)
    expect(playground.page.get_by_text("a whole number from 1 to")).to_be_hidden()
    playground.fills.first.click()
    expect(playground.text).to_have_value("Paris is the capital of France.")


def test_no_targets_yet_is_no_error(playground: Playground) -> None:
    # The page sends no request before the visitor writes a target.
    asked = playground.later_inputs()
    playground.mode("Your words")
    expect(playground.page.get_by_text("Write the words to rank")).to_be_visible()
    playground.page.get_by_label("Rank only these").fill(" , ")
    expect(playground.page.get_by_text("Write the words to rank")).to_be_visible()
    assert asked == []
    playground.page.get_by_label("Rank only these").fill("city")
    expect(playground.fills).to_have_count(1)


def test_coming_back_to_what_is_shown_asks_nothing(open_page: OpenPage) -> None:
    # The page already shows the response for this text.
    playground = open_page(own_context=True)
    playground.wait_until_answered()
    asked, clock = playground.later_inputs(), playground.page.clock
    playground.stop_clock()
    playground.text.fill(f"{TEXT} ")
    clock.run_for(50)
    playground.text.fill(TEXT)
    playground.wait_until_answered()
    clock.run_for(2000)
    playground.text.fill(f"{TEXT}!")
    with playground.page.expect_response("**/fill-mask"):
        clock.run_for(2000)
    assert asked == [f"{TEXT}!"]
