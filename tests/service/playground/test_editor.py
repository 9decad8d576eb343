"""Insertion and removal of masks in the editor."""

from playwright.sync_api import expect

from tests.service.playground.conftest import OpenPage
from tests.service.playground.playground import Playground

SENTENCE = "The old man's dog barked."
# position of a character of the text area, from the mirror behind it
CHARACTER_AT = """
(at) => {
  const walker = document.createTreeWalker(document.getElementById("mirror"), NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); at -= node.length) {
    if (at >= node.length) continue;
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    const { x, y, width, height } = range.getBoundingClientRect();
    return [x + width / 2, y + height / 2];
  }
}
"""
# edges of the first badge, of the bracket at the end of its mask, and of the editor, from the top
BADGE_AND_BRACKET = """
() => {
  const mask = document.querySelector("#mirror .mask");
  const style = getComputedStyle(mask);
  const badge = getComputedStyle(mask, "::after");
  const range = document.createRange();
  range.selectNodeContents(mask);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${style.fontSize} ${style.fontFamily}`;
  const { fontBoundingBoxAscent, actualBoundingBoxAscent } = pen.measureText("]");
  const bottom = mask.getBoundingClientRect().bottom - parseFloat(badge.bottom);
  return {
    editor: document.getElementById("editor").getBoundingClientRect().top,
    top: bottom - parseFloat(badge.height),
    bottom,
    bracket: range.getBoundingClientRect().top + fontBoundingBoxAscent - actualBoundingBoxAscent,
  };
}
"""


def put_caret(playground: Playground, start: int, end: int | None = None) -> None:
    """Select a range of the text, counted in UTF-16 units."""
    playground.text.focus()
    playground.text.evaluate(
        "(area, [start, end]) => area.setSelectionRange(start, end)",
        [start, start if end is None else end],
    )


def double_click(playground: Playground, at: int) -> None:
    """Double-click a character of the text field."""
    x, y = playground.page.evaluate(CHARACTER_AT, at)
    playground.page.mouse.dblclick(x, y)


def test_double_click_masks_a_word(playground: Playground) -> None:
    # The page shows the fills of the new mask.
    playground.write(SENTENCE)
    double_click(playground, SENTENCE.index("dog"))
    expect(playground.text).to_have_value("The old man's [MASK] barked.")
    playground.wait_until_answered()
    fills = playground.service_fills("The old man's [MASK] barked.")
    playground.expect_fills(playground.fills, fills)


def test_double_click_and_typing_replaces_the_word(playground: Playground) -> None:
    playground.write(SENTENCE)
    double_click(playground, SENTENCE.index("dog"))
    playground.page.keyboard.type("cat")
    expect(playground.text).to_have_value("The old man's cat barked.")


def test_double_click_on_a_mask_selects_it(playground: Playground) -> None:
    # The selection includes the brackets of the mask, so that typed text replaces the mask.
    playground.write("The [MASK] barked.")
    double_click(playground, 7)
    expect(playground.text).to_have_value("The [MASK] barked.")
    playground.page.keyboard.type("dog")
    expect(playground.text).to_have_value("The dog barked.")


def test_where_a_character_is_drawn_a_click_puts_the_caret(playground: Playground) -> None:
    # The text area and its mirror break lines in the same places.
    text = (
        "A line  with   spaces,\ta tab, and a-long-word-"
        + "x" * 120
        + " 😀 👩‍👩‍👧 naïve [MASK]\n\n"
        "then another line that is long enough to be broken at least once, and [MASK] again. 漢字\n"
    )
    playground.text.fill(text)
    units = text.encode("utf-16-le")
    for word in ("spaces", "naïve", "[MASK]\n", "broken", "[MASK] again", "字"):
        at = len(text[: text.index(word)].encode("utf-16-le")) // 2
        x, y = playground.page.evaluate(CHARACTER_AT, at)
        playground.page.mouse.click(x - 3, y)
        assert playground.text.evaluate("(area) => area.selectionStart") == at, word
    heights = "(area) => [area.scrollHeight, area.clientHeight]"
    assert len(set(playground.text.evaluate(heights))) == 1
    assert len(units) // 2 > len(text)


def test_the_button_says_what_it_masks(playground: Playground) -> None:
    # The label quotes the word at the caret or the selection.
    cases = [
        ((10, 10), "Mask “man's”", "The old [MASK] dog barked."),
        ((7, 7), "Mask “old”", "The [MASK] man's dog barked."),
        ((3, 14), "Mask “old man's”", "The [MASK] dog barked."),
        ((25, 25), "Insert a mask", "The old man's dog barked. [MASK]"),
        ((0, 0), "Mask “The”", "[MASK] old man's dog barked."),
    ]
    playground.write(SENTENCE)
    for caret, label, masked in cases:
        put_caret(playground, *caret)
        playground.page.get_by_role("button", name=label).click()
        expect(playground.text).to_have_value(masked)
        expect(playground.text).to_be_focused()
        playground.page.get_by_role("button", name="Undo").click()


def test_there_is_nothing_to_mask_in_a_mask(playground: Playground) -> None:
    put_caret(playground, 15)
    button = playground.page.locator("#mask")
    expect(button).to_have_attribute("aria-disabled", "true")
    button.click(force=True)
    expect(playground.text).to_have_value("Paris is the [MASK] of France.")


def test_a_selection_that_cuts_a_mask_takes_it_whole(playground: Playground) -> None:
    # Half a mask is neither a mask nor a word.
    playground.write("The old [MASK] barked.")
    put_caret(playground, 4, 11)
    playground.page.keyboard.press("Alt+M")
    expect(playground.text).to_have_value("The [MASK] barked.")


def test_a_mask_is_put_between_spaces_where_it_must(playground: Playground) -> None:
    # Spaces separate the mask from the words beside it.
    playground.write("one,two")
    put_caret(playground, 4)
    playground.text.evaluate("(area) => area.setRangeText('', 4, 7)")
    playground.page.keyboard.press("Alt+M")
    expect(playground.text).to_have_value("one, [MASK]")


def test_what_the_page_put_in_is_taken_back(fresh: Playground) -> None:
    # The page's button and the browser's undo command both revert the changes one by one.
    undo = fresh.page.get_by_role("button", name="Undo")
    expect(undo).to_be_hidden()
    fresh.write(SENTENCE)
    double_click(fresh, SENTENCE.index("dog"))
    fresh.wait_until_answered()
    fresh.fills.nth(1).click()
    expect(fresh.text).not_to_have_value("The old man's [MASK] barked.")
    undo.click()
    expect(fresh.text).to_have_value("The old man's [MASK] barked.")
    undo.click()
    expect(fresh.text).to_have_value(SENTENCE)
    expect(undo).to_be_hidden()

    double_click(fresh, SENTENCE.index("dog"))
    fresh.page.keyboard.press("ControlOrMeta+z")
    expect(fresh.text).to_have_value(SENTENCE)


def test_masks_are_numbered_where_there_are_several(playground: Playground) -> None:
    # A mask has a highlight while the pointer is on one of its fills.
    playground.write("The [MASK] barked at the [MASK].")
    masks = playground.page.locator("#mirror .mask")
    expect(masks).to_have_count(2)
    assert [mask.get_attribute("data-number") for mask in masks.all()] == ["1", "2"]
    playground.fills_of(2).first.hover()
    expect(masks.nth(0)).not_to_have_class("mask pointed")
    expect(masks.nth(1)).to_have_class("mask pointed")
    playground.write("The [MASK] barked.")
    assert masks.first.get_attribute("data-number") is None


def test_the_number_of_a_mask_leaves_its_bracket_free(playground: Playground) -> None:
    # The number is between the editor's frame and the top of the bracket, on screens of each size.
    # A line of the second font has less room above its brackets.
    playground.write("The [MASK] barked at the [MASK].")
    mirror = playground.page.locator("#mirror")
    for font in ("system-ui", "monospace"):
        mirror.evaluate("(mirror, font) => { mirror.style.fontFamily = font; }", font)
        for width in (1280, 390):
            playground.page.set_viewport_size({"width": width, "height": 700})
            edges = playground.page.evaluate(BADGE_AND_BRACKET)
            assert edges["editor"] < edges["top"] < edges["bottom"] <= edges["bracket"], edges


def test_the_caret_stays_in_view_in_a_long_text(playground: Playground) -> None:
    # The text field scrolls so that the end of the text stays visible during typing.
    playground.text.fill("A line.\n" * 80)
    playground.page.keyboard.press("ControlOrMeta+End")
    playground.page.keyboard.type("The end [MASK].")
    surface = playground.page.locator(".surface").first
    assert surface.evaluate("(e) => e.scrollHeight - e.scrollTop - e.clientHeight") < 40
    assert surface.evaluate("(e) => e.clientHeight < innerHeight / 2")


def test_a_phone_is_told_what_its_fingers_can_do(open_page: OpenPage) -> None:
    # Touch screens have no double click, so the hint names another gesture.
    # Phones have no Alt key, so the button does not name its key.
    playground = open_page(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    expect(playground.page.get_by_text("Tap a word, then mask it.")).to_be_visible()
    expect(playground.page.get_by_text("Alt M")).to_be_hidden()


def test_a_keyboard_is_told_its_key(playground: Playground) -> None:
    # A narrow window has no room for the key.
    expect(playground.page.get_by_text("Alt M")).to_be_visible()
    playground.page.set_viewport_size({"width": 390, "height": 700})
    expect(playground.page.get_by_text("Alt M")).to_be_hidden()
