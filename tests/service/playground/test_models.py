"""Choice among several models and requests to the chosen model."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Request, expect

from tests.service.playground.axe import AXE_CONTEXT, expect_accessible
from tests.service.playground.browser import ROOT, page_server
from tests.service.playground.conftest import FIRST_EXAMPLE, OpenPage, ReusePage
from tests.service.playground.playground import Playground
from tests.service.playground.snippets import (
    code_of,
    fill_lines,
    run_curl,
    run_javascript,
    run_python,
)

pytestmark = pytest.mark.slow

BUNDLE = ROOT / "service" / "fillmask" / "bundles" / "default"
DEFAULT = "fillmask-minilm-en"
OTHER = "a company/a model whose name is long, 50 % longer than others'"
PATH = "models/" + quote(OTHER, safe="/'")
TEXT = "The [MASK] barked."
OTHER_TEXT = "The <mask> barked."


def put_other(path: Path) -> None:
    """Add the built-in model with another name, another mask token and a lower token limit."""
    shutil.copytree(BUNDLE, path)
    for name in ("tokenizer.json", "bundle.json"):
        text = (path / name).read_text(encoding="utf-8")
        (path / name).write_text(text.replace("[MASK]", "<mask>"), encoding="utf-8")
    bundle = json.loads((path / "bundle.json").read_text(encoding="utf-8"))
    tokenizer = (path / "tokenizer.json").read_bytes()
    bundle["files"]["tokenizer.json"] = {
        "sha256": hashlib.sha256(tokenizer).hexdigest(),
        "bytes": len(tokenizer),
    }
    bundle |= {"name": OTHER, "description": "Another one.", "max_tokens": 100}
    (path / "bundle.json").write_text(json.dumps(bundle), encoding="utf-8")


@pytest.fixture(scope="module")
def models_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a service with two models, the second of which is the default."""
    bundles = tmp_path_factory.mktemp("bundles")
    put_other(bundles / "a")
    shutil.copytree(BUNDLE, bundles / "b")
    with page_server("--bundle", str(bundles), "--model", DEFAULT) as url:
        yield url


@pytest.fixture
def several(reuse: ReusePage, models_url: str) -> Playground:
    """The page of a service with both models, which earlier tests have used."""
    return reuse(models_url, FIRST_EXAMPLE)


def choice(playground: Playground) -> Locator:
    """Return the list from which visitors choose a model."""
    return playground.page.get_by_role("banner").get_by_role("combobox", name="Model")


def choose(playground: Playground, name: str) -> None:
    """Choose a model and wait for the response."""
    choice(playground).select_option(name)
    playground.wait_until_answered()


def other_fills(playground: Playground, text: str) -> Any:
    """Return the other model's fills for a text."""
    return playground.ask(PATH, {"inputs": text, "parameters": {"top_k": 5}})


def test_another_one_is_asked_once_it_is_chosen(several: Playground) -> None:
    # The test uses the keyboard. Masks, limits and model facts are those of the chosen model.
    several.write(TEXT)
    paths: list[str] = []

    def hear(request: Request) -> None:
        paths.append(request.url.removeprefix(f"{several.url}/"))

    several.page.on("request", hear)
    choice(several).focus()
    several.page.keyboard.press("ArrowUp")
    several.wait_until_answered()
    expect(choice(several)).to_be_focused()
    expect(several.text).to_have_value(OTHER_TEXT)
    expect(several.page.locator("#text-mirror .mask")).to_have_text("<mask>")
    several.expect_fills(several.fills, other_fills(several, OTHER_TEXT))
    facts = several.page.get_by_role("contentinfo")
    expect(facts).to_contain_text("Another one.")
    expect(facts).to_contain_text("100 tokens")
    expect(several.page.get_by_label("Above 100 tokens")).to_be_visible()

    several.fills.first.click()
    several.wait_until_answered()
    several.tokens.nth(1).click()
    several.expect_fills(several.fills, other_fills(several, OTHER_TEXT))
    several.page.get_by_role("button", name="One mask").click()
    several.wait_until_answered()
    expect(several.text).to_have_value("Paris is the <mask> of France.")
    choose(several, DEFAULT)
    expect(several.text).to_have_value("Paris is the [MASK] of France.")
    expect(facts).to_contain_text("256 tokens")
    assert paths == [PATH, f"{PATH}/score", PATH, PATH, "fill-mask"]


@pytest.mark.parametrize("text", [OTHER_TEXT, "The dog barked."])
def test_the_code_asks_the_chosen_one(several: Playground, text: str, tmp_path: Path) -> None:
    choose(several, OTHER)
    several.write(text)
    answer = run_curl(code_of(several, "curl"), tmp_path)
    lines = (
        [f"{token['surprisal']:.1f} {token['token_str']}" for token in answer["tokens"]]
        if "dog" in text
        else fill_lines(answer)
    )
    assert PATH in code_of(several, "curl").replace("'\\''", "'")
    assert run_python(code_of(several, "Python")) == lines
    assert run_javascript(code_of(several, "JavaScript")) == lines


def test_a_link_names_the_chosen_one(open_page: OpenPage, models_url: str) -> None:
    # A link to the default model contains no model name.
    several = open_page(url=models_url)
    several.wait_until_answered()
    page = several.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("navigator.clipboard.writeText('')")
    links = [""]
    for name in (DEFAULT, OTHER):
        choose(several, name)
        page.locator("#copy-link").click()
        page.wait_for_function(
            "async (before) => await navigator.clipboard.readText() !== before", arg=links[-1]
        )
        links.append(page.evaluate("navigator.clipboard.readText()"))
    _, default, other = links
    assert "model=" not in default

    page.goto("about:blank")
    page.goto(other)
    several.wait_until_answered()
    expect(choice(several)).to_have_value(OTHER)
    expect(several.text).to_have_value("Paris is the <mask> of France.")
    several.expect_fills(several.fills, other_fills(several, "Paris is the <mask> of France."))
    page.goto(default)
    expect(choice(several)).to_have_value(DEFAULT)
    several.wait_until_answered()
    expect(several.text).to_have_value("Paris is the [MASK] of France.")


def test_two_models_beside_each_other(several: Playground) -> None:
    # Both models read the same text, each with its own mask token. A fill goes into this text.
    page = several.page
    several.write(TEXT)
    page.get_by_role("button", name="Compare").click()
    menu = page.get_by_role("combobox", name="Model to compare with")
    expect(menu).to_have_value(OTHER)
    for name in (DEFAULT, OTHER):
        expect(page.get_by_role("group", name=name, exact=True)).to_be_visible()
    several.expect_fills(several.fills, several.service_fills(TEXT))
    others = page.locator("#other-view .fill")
    several.expect_fills(others, other_fills(several, OTHER_TEXT))
    several.text.fill("The [MASK] barked at the [MASK].")
    text = "The <mask> barked at the <mask>."
    [_, fills] = other_fills(several, text)
    several.expect_fills(others.nth(5).locator("xpath=ancestor::ol").get_by_role("button"), fills)
    others.nth(5).click()
    expect(several.text).to_have_value(fills[0]["sequence"].replace("<mask>", "[MASK]"))
    page.get_by_role("button", name="Undo").click()
    expect(several.text).to_have_value("The [MASK] barked at the [MASK].")

    field = page.get_by_role("textbox", name="Text to compare with")
    field.fill("Where is the <mask>?")
    several.expect_fills(others, other_fills(several, "Where is the <mask>?"))
    menu.select_option(DEFAULT)
    expect(field).to_have_value("Where is the [MASK]?")
    several.expect_fills(others, several.service_fills("Where is the [MASK]?"))


def test_everybody_can_choose(open_page: OpenPage, models_url: str) -> None:
    # Even with a long model name, axe finds no error and the page fits small screens.
    playground = open_page(url=models_url, **AXE_CONTEXT)
    playground.wait_until_answered()
    choose(playground, OTHER)
    expect_accessible(playground.page)
    playground.expect_to_fit()
    playground.page.get_by_role("button", name="Compare").click()
    menu = playground.page.get_by_role("combobox", name="Model to compare with")
    expect(menu).to_have_value(DEFAULT)
    expect(playground.page.locator("#other-view .fill")).to_have_count(5)
    expect_accessible(playground.page)
    playground.expect_to_fit()
