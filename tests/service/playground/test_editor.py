"""Insertion and removal of masks in the editor."""

from playwright.sync_api import expect

from tests.service.playground.playground import Playground

SENTENCE = "The old man's dog barked."
# position of a character of the text area, from the mirror behind it
CHARACTER_AT = """
(at) => {
  const mirror = document.getElementById("text-mirror");
  const walker = document.createTreeWalker(mirror, NodeFilter.SHOW_TEXT);
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


def test_what_the_page_put_in_is_taken_back(playground: Playground) -> None:
    # The page's button and the browser's undo command both revert the changes one by one.
    undo = playground.page.get_by_role("button", name="Undo")
    expect(undo).to_be_hidden()
    playground.write(SENTENCE)
    double_click(playground, SENTENCE.index("dog"))
    masked = "The old man's [MASK] barked."
    expect(playground.text).to_have_value(masked)
    playground.wait_until_answered()
    fills = playground.service_fills(masked)
    playground.expect_fills(playground.fills, fills)
    playground.fills.nth(1).click()
    expect(playground.text).to_have_value(fills[1]["sequence"])
    undo.click()
    expect(playground.text).to_have_value(masked)
    undo.click()
    expect(playground.text).to_have_value(SENTENCE)
    expect(undo).to_be_hidden()

    double_click(playground, SENTENCE.index("dog"))
    playground.page.keyboard.press("ControlOrMeta+z")
    expect(playground.text).to_have_value(SENTENCE)


def test_masks_are_numbered_where_there_are_several(playground: Playground) -> None:
    playground.write("The [MASK] barked at the [MASK].")
    masks = playground.page.locator("#text-mirror .mask")
    expect(masks).to_have_count(2)
    assert [mask.get_attribute("data-number") for mask in masks.all()] == ["1", "2"]
    playground.write("The [MASK] barked.")
    assert masks.first.get_attribute("data-number") is None
