"""Order of texts by a reranker, and words of a sparse vector."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.model.samples import VERSES
from tests.service.classifiers import write_classifier
from tests.service.playground.axe import AXE_CONTEXT, expect_accessible
from tests.service.playground.browser import page_server
from tests.service.playground.conftest import OpenPage
from tests.service.playground.playground import Playground
from tests.service.playground.snippets import code_of, run_curl, run_javascript, run_python
from tests.service.sparse_bundles import write_sparse_bundle

pytestmark = pytest.mark.slow

QUERY, TEXTS = "Where is the dog?", ["The dog barked.", 'It\'s a "cup" of tea.', "A ship."]


@pytest.fixture(scope="module")
def search_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a service with a reranker, its default, and a model with sparse vectors."""
    bundles = tmp_path_factory.mktemp("bundles")
    write_classifier(bundles / "a", name="ranker", labels=("relevant",))
    write_sparse_bundle(bundles / "splade")
    with page_server("--bundle", str(bundles), "--model", "ranker") as url:
        yield url


def rows(playground: Playground, name: str) -> Locator:
    return playground.page.get_by_role("list", name=name).get_by_role("listitem")


def text_of(playground: Playground) -> Locator:
    return playground.page.get_by_role("textbox", name="Text", exact=True)


def order(playground: Playground, texts: list[str]) -> list[dict[str, Any]]:
    """Write a query with texts, and return the response to them."""
    text_of(playground).fill(QUERY)
    field = playground.page.get_by_role("textbox", name="Texts to order, one per line")
    field.fill("\n\n".join(texts))
    playground.wait_until_answered()
    return list(playground.ask("rerank", {"query": QUERY, "texts": texts}))


def test_a_reranker_orders_texts(open_page: OpenPage, search_url: str, tmp_path: Path) -> None:
    playground = open_page(url=search_url)
    playground.wait_until_answered()
    expect(playground.page.get_by_role("heading", level=2).first).to_have_text("Order")
    ranks = order(playground, TEXTS)
    lines = [f"{TEXTS[one['index']]} {one['score'] * 100:.2f} %" for one in ranks]
    expect(rows(playground, "Texts")).to_have_text(lines)
    expect(playground.page.locator("#announcer")).to_contain_text(
        f"Best: {TEXTS[ranks[0]['index']]}"
    )
    assert run_curl(code_of(playground, "curl"), tmp_path) == ranks
    printed = [f"{one['score']:.4f} {TEXTS[one['index']]}" for one in ranks]
    assert run_python(code_of(playground, "Python")) == printed
    assert run_javascript(code_of(playground, "JavaScript")) == printed
    playground.page.get_by_role("textbox", name="Texts to order").fill(" \n ")
    expect(playground.page.locator("#view")).to_contain_text("the texts to order, one per line")
    playground.page.get_by_role("radio", name="Labels").check()
    expect(rows(playground, "Labels")).to_have_count(1)
    expect(playground.page.get_by_role("textbox", name="Second text, optional")).to_be_visible()


def test_a_sparse_vector_has_words(open_page: OpenPage, search_url: str, tmp_path: Path) -> None:
    playground = open_page("/#text=x&model=splade", url=search_url)
    text_of(playground).fill(VERSES[0])
    playground.wait_until_answered()
    expect(playground.page.get_by_role("heading", level=2).first).to_have_text("Words")
    body = {"inputs": VERSES[0], "format": "tokens", "top_n": 50}
    [weights] = playground.ask("models/splade/embed_sparse", body)
    ranked = sorted(weights.items(), key=lambda one: -one[1])
    lines = [f"{token} {weight:.2f}" for token, weight in ranked]
    expect(rows(playground, "Words")).to_have_text(lines)
    expect(playground.page.locator("#modes")).to_be_hidden()
    assert run_curl(code_of(playground, "curl"), tmp_path) == [weights]
    printed = [f"{weight:.2f} {token}" for token, weight in weights.items()]
    assert run_python(code_of(playground, "Python")) == printed
    assert run_javascript(code_of(playground, "JavaScript")) == printed


@pytest.mark.parametrize("link", ["", "/#text=the cat&model=splade"])
def test_the_results_are_accessible(open_page: OpenPage, search_url: str, link: str) -> None:
    playground = open_page(link, url=search_url, **AXE_CONTEXT)
    playground.wait_until_answered()
    expect_accessible(playground.page)
