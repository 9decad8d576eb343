"""Every face and every wire format refuses the same options with the same sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fillmask.errors import InvalidRequestError
from fillmask.parameters.validation import CallKeywords
from fillmask.tasks.classify.parameters import ClassifyKeywords, ClassifyParameters
from fillmask.tasks.classify_tokens.parameters import (
    ClassifyTokensKeywords,
    ClassifyTokensParameters,
)
from fillmask.tasks.fill_mask.parameters import FillMaskKeywords, FillMaskParameters
from fillmask.tasks.score.parameters import ScoreKeywords, ScoreParameters
from tests.service.cli.command_line import fillmask, write_rows
from tests.service.tiny import SPECIAL, VOCABULARY

TOP_K = f"top_k must be a whole number from 1 to {len(VOCABULARY) - len(SPECIAL)} (got"
WORD = "max_word_tokens must be a whole number from 1 to 5 (got"
TARGETS = "targets must be a list of 1 to 10000 texts (got"
NOT_BLANK = "must be a non-blank text (got"
CHOOSE = "exclude each other; choose one."
FILLS = "top_k, targets, granularity, max_word_tokens, strategy, order, on_long_text."
SPAN = "span must be [start, end] with two whole numbers of at least 0 (got"
LABELS = "top_k must be a whole number of at least 1 (got"
FUNCTION = "function_to_apply must be softmax or sigmoid or none (got"

AGGREGATION = "aggregation_strategy must be none or simple or first or average or max (got"
IGNORED = "ignore_labels must be a list of 0 to 1000 texts (got"
ANSWERS = "ignore_labels must have only labels of the answer,"
TOP_N = "top_n must be a whole number of at least 1 (got"
WEIGHT = "min_weight must be a number of at least 0 (got"
QUERY, LIST = f"query {NOT_BLANK}", "texts must be a list of one or more texts (got"
# task -> text and invalid options with their sentence
REFUSED: dict[str, tuple[str, list[tuple[dict[str, Any], str]]]] = {
    "fill-mask": (
        "the [MASK] .",
        [
            ({"top_k": 0}, f"{TOP_K} 0)."),
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
            (
                {"targets": ["Timbuktu"]},
                (
                    'The target "Timbuktu" has characters that the model\'s vocabulary lacks; '
                    "remove the target."
                ),
            ),
            (
                {"targets": ["[SEP]"]},
                ('The target "[SEP]" has a special token of the model; write only ordinary text.'),
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
            ({"on_long_text": "window"}, 'on_long_text must be error or truncate (got "window").'),
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
    "classify-tokens": (
        "she is in paris .",
        [
            ({"aggregation_strategy": "last"}, f'{AGGREGATION} "last").'),
            ({"aggregation_strategy": True}, f"{AGGREGATION} true)."),
            ({"ignore_labels": "O"}, f'{IGNORED} "O").'),
            ({"ignore_labels": ["O"] * 1001}, f"{IGNORED} a list of 1001)."),
            ({"ignore_labels": ["O", 3]}, "ignore_labels[1] must be a text (got 3)."),
            ({"ignore_labels": ["MISC"]}, f'{ANSWERS} O, PER, LOC (got "MISC").'),
            ({"ignore_labels": ["B-PER"]}, f'{ANSWERS} O, PER, LOC (got "B-PER").'),
            (
                {"ignore_labels": ["PER"], "aggregation_strategy": "none"},
                f'{ANSWERS} O, B-PER, I-PER, B-LOC, I-LOC (got "PER").',
            ),
            (
                {"on_long_text": "truncate"},
                'on_long_text must be error or window (got "truncate").',
            ),
            (
                {"top_k": 1},
                (
                    'Unknown field "top_k" in parameters; allowed: aggregation_strategy, '
                    "ignore_labels, on_long_text."
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
# arguments of Python, which are the body over HTTP
BODIES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "embed_sparse": [
        ({"inputs": ["a", 3]}, "inputs[1] must be a text (got 3)."),
        ({"inputs": [{"text": "a"}]}, "inputs[0] must be a text (got an object)."),
        ({"inputs": None}, "inputs must be a text or a list of texts (got null)."),
        ({"inputs": "a", "top_n": 0}, f"{TOP_N} 0)."),
        ({"inputs": "a", "min_weight": "1"}, f'{WEIGHT} "1").'),
        ({"inputs": "a", "min_weight": True}, f"{WEIGHT} true)."),
        ({"inputs": "a", "min_weight": -0.5}, f"{WEIGHT} -0.5)."),
        (
            {"inputs": "a", "input_type": "passage"},
            'input_type must be document or query (got "passage").',
        ),
    ],
    "rerank": [
        ({"query": " ", "texts": ["a"]}, f'{QUERY} " ").'),
        ({"query": None, "texts": ["a"]}, f"{QUERY} null)."),
        ({"query": ["a"], "texts": ["a"]}, f"{QUERY} a list)."),
        ({"query": "a", "texts": ["a", 3]}, "texts[1] must be a text (got 3)."),
        ({"query": "a", "texts": [{"text": "a"}]}, "texts[0] must be a text (got an object)."),
        ({"query": "a", "texts": "a"}, f'{LIST} "a").'),
        ({"query": "a", "texts": {}}, f"{LIST} an object)."),
        ({"query": "a", "texts": ["", " "]}, "texts has no tokens; write at least one word."),
        ({"query": "a", "texts": ["a"], "top_n": 1.5}, f"{TOP_N} 1.5)."),
        (
            {"query": "a", "texts": ["a"], "raw_scores": 1},
            "raw_scores must be true or false (got 1).",
        ),
        (
            {"query": "a", "texts": ["a"], "truncate": "no"},
            'truncate must be true or false (got "no").',
        ),
        (
            {"query": "a", "texts": ["a", "the dog " * 20]},
            (
                "texts[1] must have at most 32 tokens, special tokens included (got 44); shorten "
                "it or set truncate to true."
            ),
        ),
    ],
}


@pytest.fixture(scope="module")
def errors_of_rows(
    bundles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """Errors of the command in a file whose rows have the options as their parameters."""
    found = {}
    for task, (text, cases) in REFUSED.items():
        directory = tmp_path_factory.mktemp(task)
        rows = ({"inputs": text, "parameters": options} for options, _ in cases)
        source = write_rows(directory / "rows.jsonl", rows)
        files = ("--input", source, "--output", directory / "out.jsonl", "--on-error", "report")
        done = fillmask("--task", task, "--bundle", bundles[task], *files)
        assert done.code == 2, done.err
        lines = (directory / "out.jsonl").read_text().splitlines()
        found[task] = [json.loads(line)["error"] for line in lines]
    return found


def requests(task: str, text: str, options: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the body of the same request by path, in every wire format of the task."""
    plain = {"inputs": text, "parameters": options}
    if task == "score":
        return {"/score": plain, f"/models/{name}/score": plain}
    tensor = {"name": "inputs", "shape": [1], "datatype": "BYTES", "data": [text]}
    return {
        f"/{task}": plain,
        f"/models/{name}": plain,  # Hugging Face
        f"/v1/models/{name}:predict": {"instances": [text], "parameters": options},
        f"/v2/models/{name}/infer": {"inputs": [tensor], "parameters": options},
    }


@pytest.mark.parametrize(("task", "index"), CASES)
def test_the_sentence_is_the_same(
    task: str,
    index: int,
    clients: dict[str, TestClient],
    methods: dict[str, Any],
    errors_of_rows: dict[str, list[str]],
) -> None:
    text, cases = REFUSED[task]
    options, sentence = cases[index]
    name = {"classify": "topics", "classify-tokens": "tagger"}.get(task, "tiny")
    for path, body in requests(task, text, options, name).items():
        response = clients[task].post(path, json=body)
        found = response.json()["error"].partition("; model ")[0].removesuffix(".")
        assert (response.status_code, found) == (422, sentence.removesuffix(".")), path
    assert errors_of_rows[task][index] == sentence
    for keywords in (options, {"parameters": options}):
        with pytest.raises(InvalidRequestError) as caught:
            methods[task](text, **keywords)
        assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("task", "body", "sentence"),
    [
        pytest.param(task, body, sentence, id=f"{task} {sentence[:50]}")
        for task, cases in BODIES.items()
        for body, sentence in cases
    ],
)
def test_bodies_and_arguments(
    task: str,
    body: dict[str, Any],
    sentence: str,
    clients: dict[str, TestClient],
    methods: dict[str, Any],
) -> None:
    response = clients[task].post(f"/{task}", json=body)
    assert (response.status_code, response.json()) == (422, {"error": sentence})
    with pytest.raises(InvalidRequestError) as caught:
        methods[task](**body)
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
    methods: dict[str, Any], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        methods["fill-mask"]("the [MASK] .", **options)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("keywords", "parameters"),
    [
        (FillMaskKeywords, FillMaskParameters),
        (ScoreKeywords, ScoreParameters),
        (ClassifyKeywords, ClassifyParameters),
        (ClassifyTokensKeywords, ClassifyTokensParameters),
    ],
)
def test_keywords_of_python_are_the_parameters(keywords: Any, parameters: Any) -> None:
    own = [name for name in keywords.__annotations__ if name not in CallKeywords.__annotations__]
    assert own == list(parameters.model_fields)
