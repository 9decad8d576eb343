"""Keyboard access to all functions."""

from playwright.sync_api import expect

from tests.service.playground.playground import Playground


def focused(playground: Playground) -> str:
    """Return the id, the value or the text of the element with the focus."""
    return str(
        playground.page.evaluate(
            "document.activeElement.id || document.activeElement.value "
            "|| document.activeElement.textContent.trim()"
        )
    )


def test_from_a_sentence_to_filled_masks(playground: Playground) -> None:
    # The visitor writes, masks, chooses two fills, and opens and closes alternatives.
    keys = playground.page.keyboard
    playground.text.focus()
    keys.press("ControlOrMeta+a")
    keys.type("The dog barked at the mailman.")
    for _ in range(2):
        keys.press("ArrowLeft")
    keys.press("Alt+m")
    for _ in range(2):
        keys.press("ControlOrMeta+ArrowLeft")
    keys.press("Home")
    for _ in range(5):
        keys.press("ArrowRight")
    keys.press("Alt+m")
    text = "The [MASK] barked at the [MASK]."
    expect(playground.text).to_have_value(text)
    first, _ = playground.service_fills(text)
    playground.expect_fills(playground.fills_of(1), first)

    for _ in range(30):
        if playground.page.evaluate("document.activeElement.classList.contains('fill')"):
            break
        keys.press("Tab")
    expect(playground.fills_of(1).nth(0)).to_be_focused()
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    keys.press("ArrowUp")
    expect(playground.fills_of(1).nth(1)).to_be_focused()
    keys.press("Enter")
    expect(playground.text).to_have_value(first[1]["sequence"])
    playground.wait_until_answered()
    fills = playground.service_fills(first[1]["sequence"])
    playground.expect_fills(playground.fills, fills)
    expect(playground.fills.first).to_be_focused()

    keys.press("End")
    expect(playground.fills.last).to_be_focused()
    keys.press("Enter")
    expect(playground.text).to_have_value(fills[-1]["sequence"])
    playground.wait_until_answered()
    expect(playground.tokens.get_by_text(fills[-1]["token_str"]).last).to_be_focused()

    keys.press("Home")
    keys.press("ArrowRight")
    expect(playground.tokens.nth(1)).to_be_focused()
    keys.press("Enter")
    expect(playground.fills).to_have_count(5)
    keys.press("Tab")
    expect(playground.fills.first).to_be_focused()
    keys.press("Escape")
    expect(playground.tokens.nth(1)).to_be_focused()
    expect(playground.page.locator("#alternatives")).to_be_hidden()


def test_the_focus_can_be_seen(playground: Playground) -> None:
    # The focused element or its frame has an outline.
    is_seen = """() => {
        const focused = document.activeElement;
        const framed = focused.closest("textarea")?.closest(".editor");
        const marked = focused.type === "radio" ? focused.nextElementSibling : focused;
        return framed
            ? getComputedStyle(framed).boxShadow !== "none"
            : getComputedStyle(marked).outlineStyle !== "none";
    }"""
    playground.page.get_by_role("link", name="API docs").focus()
    seen = {}
    while "snippet" not in seen:
        seen[focused(playground)] = playground.page.evaluate(is_seen)
        playground.page.keyboard.press("Tab")
    assert len(seen) == 19
    assert [stop for stop, is_marked in seen.items() if not is_marked] == []
