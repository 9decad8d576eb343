"""Surprisal and alternatives of the tokens of a text without masks."""

# ruff: noqa: RUF001 - figures are written with the signs that printers use

import re

import pytest
from playwright.sync_api import expect

from tests.service.playground.playground import MINUS, Playground

pytestmark = pytest.mark.slow

TEXT = "The keys to the cabinet is lost."
LIMITS = (2, 5, 9, 13)


def level(surprisal: float) -> str:
    """Return the level of surprisal, which determines the colour of a token."""
    return str(sum(surprisal >= limit for limit in LIMITS))


def test_each_token_has_its_surprisal(playground: Playground) -> None:
    # A token shows its surprisal as a colour, as a line and, in bits, in its accessible name.
    text = "The keys to the cabinet are lost."
    playground.write(text)
    answer = playground.ask("score", {"inputs": text})
    texts = [text[token["start"] : token["end"]] for token in answer["tokens"]]
    expect(playground.tokens).to_have_text(texts)
    for button, token, word in zip(playground.tokens.all(), answer["tokens"], texts, strict=True):
        expect(button).to_have_accessible_name(f"{word}, {token['surprisal']:.1f} bits")
        expect(button).to_have_attribute("data-level", level(token["surprisal"]))
    assert {level(token["surprisal"]) for token in answer["tokens"]} >= {"0", "1", "2"}
    figures = playground.page.locator(".figures")
    expect(figures).to_contain_text(f"{MINUS}{-answer['log_prob']:.1f} nats")
    expect(figures).to_contain_text(f"{answer['pseudo_perplexity']:,.1f}")
    expect(playground.page.get_by_role("list", name="Bits of surprisal")).to_have_text(
        "0–22–55–99–13over 13"
    )
    # for screen readers one sentence, after a pause in typing
    expect(playground.announcer).to_have_text(
        re.compile(r"Pseudo-perplexity [\d.,]+; most surprising: \w+, [\d.]+ bits\.")
    )
    assert playground.announcer.get_attribute("role") == "status"


def test_a_token_that_is_pointed_at_is_read_out(playground: Playground) -> None:
    # The message has the surprisal in bits, the probability and the vocabulary's spelling.
    playground.write("Photosynthesis!")
    tokens = playground.ask("score", {"inputs": "Photosynthesis!"})["tokens"]
    readout = playground.page.locator(".readout")
    playground.tokens.nth(1).hover()
    expect(readout).to_contain_text(f"yn {tokens[1]['surprisal']:.1f} bits, probability ")
    expect(readout).to_contain_text("read as ##yn")
    playground.tokens.nth(3).focus()
    expect(readout).to_contain_text(f"! {tokens[3]['surprisal']:.1f} bits")


def test_alternatives_of_a_token(playground: Playground) -> None:
    # A click on an alternative replaces the token with the alternative. Without alternatives, the
    # code panel requests scores again.
    playground.write(TEXT)
    token = playground.tokens.get_by_text("is", exact=True)
    for is_open in (True, False):
        token.click()
        expect(playground.page.locator("#alternatives")).to_be_visible(visible=is_open)
        expect(token).to_have_attribute("aria-expanded", str(is_open).lower())
    expect(playground.page.locator("#snippet")).to_contain_text("/score")
    token.click()
    fills = playground.service_fills("The keys to the cabinet [MASK] lost.")
    panel = playground.page.get_by_role("region", name="Instead of “is”")
    playground.expect_fills(panel.locator(".fill"), fills)
    own = [fill["token_str"] for fill in fills].index("is")
    expect(panel.locator(".fill").nth(own)).to_contain_text("in the text")
    expect(panel.locator("[aria-current]")).to_have_count(1)
    expect(playground.page.locator("#snippet")).to_contain_text("cabinet [MASK] lost.")

    other = 1 if own == 0 else 0
    panel.locator(".fill").nth(other).click()
    expect(playground.text).to_have_value(fills[other]["sequence"])
    playground.wait_until_answered()
    expect(panel).to_be_hidden()
    expect(playground.page.locator("#snippet")).to_contain_text("/score")


@pytest.mark.parametrize(
    "text",
    ["😀 The dog 👩‍👩‍👧 barked 𝒾n Paris.", "naïve Ça 漢字 e\u0301t\u0301", "  two\n\n  lines\t"],
)
def test_characters_are_counted_as_the_service_does(playground: Playground, text: str) -> None:
    # A character of two UTF-16 units counts as one character.
    playground.write(text)
    tokens = playground.ask("score", {"inputs": text})["tokens"]
    expect(playground.tokens).to_have_text([text[t["start"] : t["end"]] for t in tokens])
    assert playground.page.locator(".tokens").text_content() == text

    playground.tokens.last.click()
    last = tokens[-1]
    masked = f"{text[: last['start']]}[MASK]{text[last['end'] :]}"
    playground.expect_fills(playground.fills, playground.service_fills(masked))


def test_tokens_that_share_a_character_are_one_piece(playground: Playground) -> None:
    # Some models have tokens for the bytes of an emoji.
    # The page adds the surprisals of tokens that share a character.
    parts = [("A", 0, 1, 1.0), (" ð", 1, 3, 4.0), ("Ł", 2, 3, 2.5), ("!", 3, 4, 0.5)]
    tokens = [
        {"token": 1, "token_str": name, "start": start, "end": end, "log_prob": -1.0,
         "surprisal": surprisal}
        for name, start, end, surprisal in parts
    ]  # fmt: skip
    answer = {"log_prob": -5.5, "pseudo_perplexity": 3.0, "rank": 1, "tokens": tokens}
    playground.page.route("**/score", lambda route: route.fulfill(json=answer))
    playground.write("A 😀!")
    expect(playground.tokens).to_have_text(["A", " 😀", "!"])
    expect(playground.tokens.nth(1)).to_have_accessible_name("😀, 6.5 bits")
