"""Options and links to them."""

from playwright.sync_api import expect

from tests.service.playground.conftest import OpenPage
from tests.service.playground.playground import Playground

TEXT = "Paris is the [MASK] of France."


def test_options_go_into_the_request_and_into_links(playground: Playground) -> None:
    # The fragment of a link stores text and options. Browsers send no fragment to servers.
    page, snippet = playground.page, playground.page.locator("#snippet")
    text = "Line one & 100 %: #[MASK]\n😀 [MASK] 'quoted'"
    playground.write(text)
    playground.mode("Whole words")
    page.get_by_label("words of up to").select_option("2 tokens")
    expect(snippet).to_contain_text('"granularity": "word", "max_word_tokens": 2}')
    playground.mode("Your words")
    page.get_by_label("Rank only these").fill("tea,, hot chocolate ")
    expect(snippet).to_contain_text('"parameters": {"targets": ["tea", "hot chocolate"]}')
    expect(playground.fills.first).to_contain_text("% overall")
    expect(page.get_by_label("Fills per mask")).to_be_hidden()
    page.get_by_label("Above 256 tokens").check()
    expect(snippet).to_contain_text('"on_long_text": "window"')
    playground.mode("Together")
    page.get_by_label("in the order").select_option("left to right")
    page.get_by_label("Fills per mask").fill("3")
    expect(snippet).to_contain_text(
        '{"top_k": 3, "strategy": "joint", "order": "left_to_right", "on_long_text": "window"}'
    )
    code = snippet.text_content()
    playground.wait_until_answered()
    link = playground.open_copied_link()
    assert link.startswith(f"{playground.url}/#text=")
    expect(playground.text).to_have_value(text)
    assert snippet.text_content() == code
    playground.mode("Your words")
    expect(playground.fills.first).to_contain_text("% overall")


def test_a_link_that_asks_for_what_there_is_not(open_page: OpenPage) -> None:
    # A message names the ignored parts of the link.
    link = "/#text=A+[MASK].&mode=magic&top_k=3&colour=red&order=none&window=2&model=x&text_pair=y"
    playground = open_page(link)
    expect(playground.page.locator("#link-problem")).to_have_text(
        "This page ignores invalid parts of the link: "
        "mode, colour, order, window, model, text_pair."
    )
    expect(playground.fills).to_have_count(3)


def test_values_that_are_not_allowed(playground: Playground) -> None:
    # The page sends nothing until the number is valid or there is a target.
    page, asked = playground.page, playground.later_inputs()
    number = page.get_by_label("Fills per mask")
    for wrong in ("0", "101", "", "2.5"):
        number.fill(wrong)
        expect(page.get_by_text("a whole number from 1 to 100.")).to_be_visible()
        expect(number).to_have_attribute("aria-invalid", "true")
        expect(playground.fills).to_have_count(0)
    playground.mode("Your words")
    expect(page.get_by_text("Write the words to rank")).to_be_visible()
    page.get_by_label("Rank only these").fill(" , ")
    expect(page.get_by_text("Write the words to rank")).to_be_visible()
    playground.mode("Tokens")
    assert asked == []
    number.fill("2")
    expect(playground.fills).to_have_count(2)
    expect(page.get_by_text("a whole number from 1 to")).to_be_hidden()
    playground.fills.first.click()
    expect(playground.text).to_have_value("Paris is the capital of France.")


def test_coming_back_to_what_is_shown_asks_nothing(open_page: OpenPage) -> None:
    # The page already shows the response for this text.
    playground = open_page(own_context=True)
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
