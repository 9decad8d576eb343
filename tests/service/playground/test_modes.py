"""Each mode shows the service's response, and so does its code in each language."""

from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import expect

from tests.model.samples import VERSES
from tests.service.playground.conftest import OTHER, OpenPage
from tests.service.playground.playground import MINUS, Playground, percent
from tests.service.playground.snippets import code_of, run_curl, run_javascript, run_python

AWKWARD = "It's \"a [MASK]\" \\ $HOME `date` \\n %s 😀 — naïve\n\tsecond 'line', {x} ${y}."
LONG = "very " * 300 + "[MASK]."
LONG_ENTITIES = 'It\'s "Paris", France! ' + "The mailman 😀 walks to Rome. " * 8
PAIR = {"text": "The dog barked at the cat.", "text_pair": 'It\'s a "cup" of tea.'}
TEXTS = ["The dog barked.", 'It\'s a "cup" of tea.', "A ship."]


class Row(NamedTuple):
    """A result on the page, and the line that code prints."""

    words: str
    value: str
    printed: str


def row(words: str, share: float, text: Any = None, *, number: str = "") -> Row:
    return Row(words, percent(share), f"{number}{share:.4f} {text or words}")


def fills(answer: Any, figure: str = "score", number: str = "") -> list[Row]:
    return [row(fill["token_str"], fill[figure], number=number) for fill in answer]


def targets(answer: Any) -> list[Row]:
    return fills(answer, "target_score")


def several(answer: Any) -> list[Row]:
    """Return the fills of several masks, which code prints with the number of the mask."""
    figure = "target_score" if "target_score" in answer[0][0] else "score"
    return [
        one for number, mask in enumerate(answer, 1) for one in fills(mask, figure, f"{number} ")
    ]


def joint(answer: Any) -> list[Row]:
    return [row(" ".join(fill["token_strs"]), fill["score"], fill["token_strs"]) for fill in answer]


def tokens(answer: Any) -> list[Row]:
    return [Row("", "", f"{one['surprisal']:.1f} {one['token_str']}") for one in answer["tokens"]]


def labels(answer: Any) -> list[Row]:
    return [row(one["label"], one["score"]) for one in answer[0]]


def logits(answer: Any) -> list[Row]:
    return [
        one._replace(value=one.printed.split()[0].replace("-", MINUS)) for one in labels(answer)
    ]


def order(answer: Any) -> list[Row]:
    return [row(TEXTS[one["index"]], one["score"]) for one in answer]


def entities(answer: Any) -> list[Row]:
    return [
        row(one["word"], one["score"], f"{one['entity_group']} {one['word']}") for one in answer
    ]


def weights(answer: Any) -> list[Row]:
    ranked = sorted(answer[0].items(), key=lambda one: -one[1])
    return [Row(word, f"{weight:.2f}", f"{weight:.2f} {word}") for word, weight in ranked]


class Case(NamedTuple):
    """A use of the page.

    Attributes:
        link: what the visitor has chosen, as in a copied link.
        body: the request that the page must send.
        read: the rows of the service's response.
        path: path of the request.
    """

    link: dict[str, str]
    body: dict[str, Any]
    read: Callable[[Any], list[Row]]
    path: str = "fill-mask"


def filling(read: Callable[[Any], list[Row]], text: str, *, link: Any = None, **more: Any) -> Case:
    """Return a case with the built-in model and with parameters of its request."""
    parameters = more if "targets" in more else {"top_k": 5, **more}
    return Case({"text": text, **(link or {})}, {"inputs": text, "parameters": parameters}, read)


CASES = {
    "one mask": filling(fills, AWKWARD),
    "several masks": filling(several, "The [MASK] barked at the [MASK]."),
    "targets": filling(
        targets,
        "She drank [MASK].",
        targets=["tea", "a 'cup'"],
        link={"mode": "targets", "targets": "tea,, a 'cup' "},
    ),
    "targets of several": filling(
        several,
        "She drank [MASK] and [MASK].",
        targets=["tea", "sand"],
        link={"mode": "targets", "targets": "tea,sand"},
    ),
    "words": filling(
        fills,
        LONG,
        granularity="word",
        max_word_tokens=1,
        on_long_text="window",
        link={"mode": "word", "max_word_tokens": "1", "window": "true"},
    ),
    "together": filling(
        joint,
        "He lives in [MASK] [MASK], California.",
        strategy="joint",
        order="left_to_right",
        link={"mode": "joint", "order": "left_to_right"},
    ),
    "scores": Case(
        {"text": AWKWARD.replace("[MASK]", "word")},
        {"inputs": AWKWARD.replace("[MASK]", "word")},
        tokens,
        "score",
    ),
}
MANY = {
    "labels": Case({"text": "The dog."}, {"inputs": "The dog."}, labels, "classify"),
    "labels of a pair": Case(
        {**PAIR, "model": "both", "mode": "labels"},
        {"inputs": PAIR},
        labels,
        "models/both/classify",
    ),
    "logits": Case(
        {"text": "A ship.", "model": "stars"},
        {"inputs": "A ship."},
        logits,
        "models/stars/classify",
    ),
    "order": Case(
        {"text": "A dog?", "text_pair": "\n\n".join(TEXTS), "model": "ranker", "mode": "rank"},
        {"query": "A dog?", "texts": TEXTS},
        order,
        "models/ranker/rerank",
    ),
    "entities": Case(
        {"text": LONG_ENTITIES, "model": "tagger"},
        {"inputs": LONG_ENTITIES, "parameters": {"on_long_text": "window"}},
        entities,
        "models/tagger/classify-tokens",
    ),
    "sparse": Case(
        {"text": VERSES[0], "model": "splade"},
        {"inputs": VERSES[0], "format": "tokens", "top_n": 50},
        weights,
        "models/splade/embed_sparse",
    ),
    "another model": Case(
        {"text": "A <mask>.", "model": OTHER},
        {"inputs": "A <mask>.", "parameters": {"top_k": 5}},
        fills,
        "models/" + quote(OTHER, safe="/'"),
    ),
    "scores of another model": Case(
        {"text": "A dog.", "model": OTHER},
        {"inputs": "A dog."},
        tokens,
        "models/" + quote(OTHER, safe="/'") + "/score",
    ),
}


def opened(open_page: OpenPage, request: pytest.FixtureRequest, name: str) -> Playground:
    """Return the page of a case."""
    url = request.getfixturevalue("url" if name in CASES else "many_url")
    return open_page("/#" + urlencode((CASES | MANY)[name].link), url=url)


@pytest.mark.parametrize(
    "name", [*CASES, *(pytest.param(name, marks=pytest.mark.slow) for name in MANY)]
)
def test_the_page_shows_the_response(
    open_page: OpenPage, request: pytest.FixtureRequest, name: str
) -> None:
    case = (CASES | MANY)[name]
    playground = opened(open_page, request, name)
    expect(playground.page.locator("#link-problem")).to_be_hidden()
    rows = case.read(playground.ask(case.path, case.body))
    if case.read is tokens:
        expect(playground.tokens).to_have_count(len(rows))
        return
    expect(playground.fills.locator(".words")).to_have_text([row.words for row in rows])
    expect(playground.fills.locator(".value")).to_have_text([row.value for row in rows])
    if case.read is entities:
        found = [f"{row.words}, {row.printed.split()[1]}" for row in rows[:5]]
        expect(playground.announcer).to_have_text(f"Found: {'; '.join(found)}.")
    elif len(rows) < 10 and case.read is not several:
        best = rows[0]
        expect(playground.announcer).to_have_text(f"Best: {best.words}, {best.value}.")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CASES, *MANY])
def test_the_code_gives_what_is_shown(
    open_page: OpenPage, request: pytest.FixtureRequest, name: str
) -> None:
    case = (CASES | MANY)[name]
    playground = opened(open_page, request, name)
    answer = playground.ask(case.path, case.body)
    assert run_curl(code_of(playground, "curl")) == answer
    printed = [row.printed for row in case.read(answer)]
    in_order = sorted if case.read is weights else list  # which the code prints as they come
    assert in_order(run_python(code_of(playground, "Python"))) == in_order(printed)
    if case.read is joint:  # each language prints lists in its own way
        printed = [line.replace("['", "[ '").replace("']", "' ]") for line in printed]
    assert in_order(run_javascript(code_of(playground, "JavaScript"))) == in_order(printed)
