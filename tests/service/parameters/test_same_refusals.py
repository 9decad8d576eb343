"""HTTP, the command and Python refuse the same options with the same sentence."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fillmask.app import create_app
from fillmask.errors import InvalidRequestError
from fillmask.library import FillMask
from fillmask.parameters.call import CallKeywords
from fillmask.parameters.classify import ClassifyKeywords, ClassifyParameters
from fillmask.parameters.fill_mask import FillMaskKeywords, FillMaskParameters
from fillmask.parameters.score import ScoreKeywords, ScoreParameters
from fillmask.settings import Settings
from tests.service.classifiers import write_classifier
from tests.service.cli.command_line import fillmask, write_rows
from tests.service.tiny import SPECIAL, VOCABULARY, Tiny

TOP_K = f"top_k must be a whole number from 1 to {len(VOCABULARY) - len(SPECIAL)} (got"
WORD = "max_word_tokens must be a whole number from 1 to 5 (got"
TARGETS = "targets must be a list of 1 to 10000 texts (got"
NOT_BLANK = "must be a non-blank text (got"
CHOOSE = "exclude each other; choose one."
FILLS = "top_k, targets, granularity, max_word_tokens, strategy, order, on_long_text."
SPAN = "span must be [start, end] with two whole numbers of at least 0 (got"
LABELS = "top_k must be a whole number of at least 1 (got"
FUNCTION = "function_to_apply must be softmax or sigmoid or none (got"

# task -> text and invalid options with their sentence
REFUSED: dict[str, tuple[str, list[tuple[dict[str, Any], str]]]] = {
    "fill-mask": (
        "the [MASK] .",
        [
            ({"top_k": 0}, f"{TOP_K} 0)."),
            ({"top_k": -1}, f"{TOP_K} -1)."),
            ({"top_k": 10**9}, f"{TOP_K} 1000000000)."),
            ({"top_k": 2.5}, f"{TOP_K} 2.5)."),
            ({"top_k": True}, f"{TOP_K} true)."),
            ({"top_k": "3"}, f'{TOP_K} "3").'),
            ({"top_k": [3]}, f"{TOP_K} a list)."),
            ({"targets": "tea"}, f'{TARGETS} "tea").'),
            ({"targets": []}, f"{TARGETS} a list of 0)."),
            ({"targets": ["tea"] * 10_001}, f"{TARGETS} a list of 10001)."),
            ({"targets": {"tea": 1}}, f"{TARGETS} an object)."),
            ({"targets": ["tea", ""]}, f'targets[1] {NOT_BLANK} "").'),
            ({"targets": ["tea", 3]}, f"targets[1] {NOT_BLANK} 3)."),
            ({"targets": [None]}, f"targets[0] {NOT_BLANK} null)."),
            ({"targets": ["tea", "tea"]}, 'The target "tea" is a duplicate; list it once.'),
            (
                {"targets": ["tea", "Tea"]},
                'The targets "tea" and "Tea" have the same tokens; remove one of them.',
            ),
            ({"granularity": "char"}, 'granularity must be token or word (got "char").'),
            ({"granularity": 1}, "granularity must be token or word (got 1)."),
            ({"max_word_tokens": 0}, f"{WORD} 0)."),
            ({"max_word_tokens": 6}, f"{WORD} 6)."),
            ({"max_word_tokens": "two"}, f'{WORD} "two").'),
            ({"strategy": "jiont"}, 'strategy must be independent or joint (got "jiont").'),
            ({"strategy": ["joint"]}, "strategy must be independent or joint (got a list)."),
            ({"order": "random"}, 'order must be confidence or left_to_right (got "random").'),
            ({"on_long_text": "cut"}, 'on_long_text must be error or window (got "cut").'),
            ({"on_long_text": False}, "on_long_text must be error or window (got false)."),
            ({"targets": ["tea"], "strategy": "joint"}, f'targets and strategy "joint" {CHOOSE}'),
            (
                {"targets": ["tea"], "granularity": "word"},
                f'targets and granularity "word" {CHOOSE}',
            ),
            (
                {"granularity": "word", "strategy": "joint"},
                f'granularity "word" and strategy "joint" {CHOOSE}',
            ),
            ({"topk": 3}, f'Unknown field "topk" in parameters; allowed: {FILLS}'),
            ({"topk": None}, f'Unknown field "topk" in parameters; allowed: {FILLS}'),
            ({"Strategy": "joint"}, f'Unknown field "Strategy" in parameters; allowed: {FILLS}'),
        ],
    ),
    "score": (
        "the dog barked .",
        [
            ({"variant": "both"}, 'variant must be within_word or original (got "both").'),
            ({"part": "first"}, 'part must be text or text_pair (got "first").'),
            ({"prefix": 3}, "prefix must be a text (got 3)."),
            (
                {"prefix": "a cat"},
                'inputs must start with prefix "a cat"; change one of them.',
            ),
            ({"span": [1]}, f"{SPAN} [1])."),
            ({"span": [0, -1]}, f"{SPAN} [0, -1])."),
            ({"span": "0:3"}, f'{SPAN} "0:3").'),
            ({"span": [3, 3]}, "The start of span must be less than its end (got [3, 3])."),
            ({"span": [0, 3], "prefix": "the"}, f"span and prefix {CHOOSE}"),
            (
                {"span": [0, 99]},
                "span must end at 16 or before, because inputs has 16 characters (got [0, 99]).",
            ),
            (
                {"span": [5, 9]},
                (
                    'span cuts the token "dog" of inputs, which starts at character 4 and ends at '
                    "7; include the whole token or leave it out."
                ),
            ),
            (
                {"top_k": 3},
                (
                    'Unknown field "top_k" in parameters; allowed: variant, prefix, span, part, '
                    "targets."
                ),
            ),
        ],
    ),
    "classify": (
        "the dog barked .",
        [
            ({"top_k": 0}, f"{LABELS} 0)."),
            ({"top_k": 1.5}, f"{LABELS} 1.5)."),
            ({"function_to_apply": "tanh"}, f'{FUNCTION} "tanh").'),
            ({"function_to_apply": True}, f"{FUNCTION} true)."),
            (
                {"targets": ["tea"]},
                (
                    'Unknown field "targets" in parameters; allowed: top_k, function_to_apply, '
                    "on_long_text."
                ),
            ),
        ],
    ),
}
CASES = [
    pytest.param(task, index, id=f"{task} {str(options)[:40]}")
    for task, (_, cases) in REFUSED.items()
    for index, (options, _) in enumerate(cases)
]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle of a model that classifies texts."""
    return write_classifier(tmp_path_factory.mktemp("classifier") / "topics")


@pytest.fixture(scope="module")
def clients(tiny: Tiny, bundle: Path) -> Iterator[dict[str, TestClient]]:
    """Services with the limit of the command and of Python on top_k, the model's vocabulary."""

    def create(path: Path) -> TestClient:
        return TestClient(create_app(Settings(bundle=path, threads=1, max_top_k=10**6)))

    with create(tiny.path) as fills, create(bundle) as labels:
        yield {"fill-mask": fills, "score": fills, "classify": labels}


@pytest.fixture(scope="module")
def models(tiny: Tiny, bundle: Path) -> Iterator[dict[str, Any]]:
    """Methods of the models."""
    with FillMask(tiny.path, threads=1) as fills, FillMask(bundle, threads=1) as labels:
        yield {"fill-mask": fills.fill, "score": fills.score, "classify": labels.classify}


@pytest.fixture(scope="module")
def errors_of_rows(
    tiny: Tiny, bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """Errors of the command in a file whose rows have the options as their parameters."""
    found = {}
    for task, (text, cases) in REFUSED.items():
        directory = tmp_path_factory.mktemp(task)
        rows = ({"inputs": text, "parameters": options} for options, _ in cases)
        source = write_rows(directory / "rows.jsonl", rows)
        path = bundle if task == "classify" else tiny.path
        files = ("--input", source, "--output", directory / "out.jsonl", "--on-error", "report")
        done = fillmask("--task", task, "--bundle", path, *files)
        assert done.code == 2, done.err
        lines = (directory / "out.jsonl").read_text().splitlines()
        found[task] = [json.loads(line)["error"] for line in lines]
    return found


def test_refusals_are_value_errors() -> None:
    assert issubclass(InvalidRequestError, ValueError)
    assert len(CASES) >= 40


@pytest.mark.parametrize(("task", "index"), CASES)
def test_the_sentence_is_the_same(
    task: str,
    index: int,
    clients: dict[str, TestClient],
    models: dict[str, Any],
    errors_of_rows: dict[str, list[str]],
) -> None:
    text, cases = REFUSED[task]
    options, sentence = cases[index]
    response = clients[task].post(f"/{task}", json={"inputs": text, "parameters": options})
    assert (response.status_code, response.json()) == (422, {"error": sentence})
    assert errors_of_rows[task][index] == sentence
    for keywords in (options, {"parameters": options}):
        with pytest.raises(InvalidRequestError) as caught:
            models[task](text, **keywords)
        assert str(caught.value) == sentence


class Missing:
    """A value that is neither equal to another nor different, like NA of pandas."""

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"top_k": 10**5_000}, f"{TOP_K} a value of type int)."),
        ({"top_k": Missing()}, f"{TOP_K} a value of type Missing)."),
        ({"targets": Missing()}, f"{TARGETS} a value of type Missing)."),
        ({"targets": ["tea", Missing()]}, f"targets[1] {NOT_BLANK} a value of type Missing)."),
        (
            {"strategy": Missing()},
            "strategy must be independent or joint (got a value of type Missing).",
        ),
        (
            {"on_error": Missing()},
            "on_error must be error or report (got a value of type Missing).",
        ),
        (
            {"parameters": {1: 2}},
            f'Unknown field "1" in parameters; allowed: {FILLS}',
        ),
    ],
)
def test_values_without_a_counterpart_in_json(
    models: dict[str, Any], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        models["fill-mask"]("the [MASK] .", **options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("keywords", "parameters"),
    [
        (FillMaskKeywords, FillMaskParameters),
        (ScoreKeywords, ScoreParameters),
        (ClassifyKeywords, ClassifyParameters),
    ],
)
def test_keywords_of_python_are_the_parameters(keywords: Any, parameters: Any) -> None:
    own = [name for name in keywords.__annotations__ if name not in CallKeywords.__annotations__]
    assert own == list(parameters.model_fields)
