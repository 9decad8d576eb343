"""Any JSON value as any parameter: the rules, and the same decision by HTTP, command and Python."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from fillmask.cli.arguments import parse_arguments
from fillmask.cli.commands import TextCommand
from fillmask.cli.errors import CommandError
from fillmask.errors import InvalidRequestError
from fillmask.parameters.limits import Limits
from fillmask.parameters.validation import ValidationContext
from fillmask.tasks.task import TASKS
from tests.properties import examples
from tests.service.cli.command_line import fillmask, write_rows
from tests.service.tiny import SPECIAL, VOCABULARY

MAX_TOP_K = len(VOCABULARY) - len(SPECIAL)
LIMITS = Limits(
    max_tokens=32,
    max_texts=10,
    max_masks=10,
    max_top_k=MAX_TOP_K,
    max_passes=100,
    max_body_bytes=10_000,
)
Rule = Callable[[Any], bool]
Values = st.SearchStrategy[Any]


def whole(most: float) -> Rule:
    """Return the rule of a whole number from 1 to a maximum. 2.0 is one, and true is none."""
    return lambda value: (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 1 <= value <= most
        and value % 1 == 0
    )


def one_of(*allowed: str) -> Rule:
    return lambda value: isinstance(value, str) and value in allowed


def is_list_of_targets(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    texts = [one for one in value if isinstance(one, str) and one.strip()]
    return len(texts) == len(value) == len(set(texts))


def is_span(value: Any) -> bool:
    at_least_1 = whole(float("inf"))
    return (
        isinstance(value, list)
        and len(value) == 2
        and at_least_1(value[1])
        and (at_least_1(value[0]) or (value[0] == 0 and not isinstance(value[0], bool)))
        and value[0] < value[1]
    )


# task -> parameter -> its rule and what a refusal says is allowed
RULES: dict[str, dict[str, tuple[Rule, tuple[str, ...]]]] = {
    "fill-mask": {
        "top_k": (whole(MAX_TOP_K), ("whole number", "1", str(MAX_TOP_K))),
        "targets": (is_list_of_targets, ()),
        "granularity": (one_of("token", "word"), ("token", "word")),
        "max_word_tokens": (whole(5), ("whole number", "1", "5")),
        "strategy": (one_of("independent", "joint"), ("independent", "joint")),
        "order": (one_of("confidence", "left_to_right"), ("confidence", "left_to_right")),
        "on_long_text": (one_of("error", "window"), ("error", "window")),
    },
    "score": {
        "variant": (one_of("within_word", "original"), ("within_word", "original")),
        "prefix": (lambda value: isinstance(value, str), ("text",)),
        "span": (is_span, ("start", "end")),
        "part": (one_of("text", "text_pair"), ("text", "text_pair")),
    },
    "classify": {
        "top_k": (whole(float("inf")), ("whole number", "1")),
        "function_to_apply": (
            one_of("softmax", "sigmoid", "none"),
            ("softmax", "sigmoid", "none"),
        ),
    },
}
TEXTS = {"fill-mask": "the [MASK] .", "score": "the dog barked .", "classify": "a dog ."}
CHOICES = sorted({name for rules in RULES.values() for _, all_ in rules.values() for name in all_})
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
WORDS: Values = (
    st.sampled_from(["dog", "Dog", "the", "tea ", "zyx", "[SEP]", "[MASK]", "", " "]) | TEXT
)
NUMBERS: Values = (
    st.sampled_from([True, False, -1, 0, 0.0, 0.5, 1, 1.0, 2.5, 5, 6, MAX_TOP_K, MAX_TOP_K + 1])
    | st.integers(-2, 60).map(float)
    | st.integers()
    # onnxruntime or torch turns subnormal numbers into zero
    | st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
)
SCALARS: Values = st.none() | st.booleans() | NUMBERS | st.sampled_from(CHOICES) | WORDS
VALUES: Values = SCALARS | st.lists(NUMBERS, max_size=3) | st.lists(WORDS, max_size=3)
VALUES |= st.lists(SCALARS, max_size=3) | st.dictionaries(WORDS, SCALARS, max_size=2)


@st.composite
def values(draw: st.DrawFn, task: str) -> tuple[str, Any]:
    """Draw a parameter of a task with any value, often one that a rule allows."""
    name = draw(st.sampled_from(list(RULES[task])))
    likely: dict[str, Values] = {
        "top_k": NUMBERS,
        "max_word_tokens": NUMBERS,
        "targets": st.lists(WORDS, max_size=3),
        "prefix": WORDS | st.just("the"),
        "span": st.lists(st.integers(-3, 9) | NUMBERS, min_size=2, max_size=2)
        | st.lists(NUMBERS, max_size=3),
    }
    allowed = likely[name] if name in likely else st.sampled_from(RULES[task][name][1])
    return name, draw(allowed if draw(st.booleans()) else VALUES)


def read(task: str, parameters: object) -> Any:
    return TASKS[task].parameters.read(parameters, ValidationContext(LIMITS))


@pytest.mark.parametrize("task", RULES)
def test_a_value_is_read_or_refused(task: str) -> None:
    # A refusal names the parameter, what is allowed and what it got.
    @examples(2)
    @given(values(task))
    def check(drawn: tuple[str, Any]) -> None:
        name, value = drawn
        rule, allowed = RULES[task][name]
        if value is None or rule(value):
            options = read(task, {name: value})
            default = read(task, {})
            found = getattr(options, name)
            expected = getattr(default, name) if value is None else value
            assert (list(found) if isinstance(found, tuple) else found) == expected
            assert not isinstance(found, float)
            return
        with pytest.raises(InvalidRequestError) as caught:
            read(task, {name: value})
        message = caught.value.text
        if "duplicate" in message or "less than its end" in message:
            assert isinstance(value, list)
            return
        assert message.split("[")[0].split(" ")[0] == name
        assert all(word in message for word in allowed)
        got = message.partition("(got ")[2].removesuffix(").")
        assert got in _descriptions(value)

    check()


def _descriptions(value: Any) -> list[str]:
    """Return how a message may describe a value or one of its items."""
    if isinstance(value, list):
        shown = [_descriptions(one)[0] for one in value]
        more = ", …" if len(value) > 3 else ""
        return ["a list", f"a list of {len(value)}", f"[{', '.join(shown[:3])}{more}]", *shown]
    if isinstance(value, dict):
        return ["an object"]
    return [json.dumps(value, ensure_ascii=False)[:80]]


def parameters(task: str) -> st.SearchStrategy[Any]:
    """Draw the parameters of a text, in most cases an object."""
    known = st.lists(values(task), max_size=3).map(dict)
    unknown = st.dictionaries(
        st.sampled_from(["topk", "Span"]) | WORDS, st.none() | VALUES, max_size=9
    )
    objects = known | st.builds(lambda a, b: a | b, known, unknown)
    return objects | SCALARS


def to_plain(results: Any) -> Any:
    """Return the results of Python as values of JSON."""
    if isinstance(results, list):
        return [to_plain(one) for one in results]
    return results.to_dict()


@pytest.mark.parametrize("task", RULES)
def test_http_command_and_python_decide_alike(
    task: str, clients: dict[str, TestClient], methods: dict[str, Any], bundles: dict[str, Path]
) -> None:
    # The same results, or the same sentence.
    client, call, text = clients[task], methods[task], TEXTS[task]

    @examples(0.1)
    @given(st.lists(parameters(task), min_size=1, max_size=20))
    def check(each: list[Any]) -> None:
        expected = []
        for one in each:
            response = client.post(f"/{task}", json={"inputs": text, "parameters": one})
            assert response.status_code in {200, 422}
            expected.append(response.json())
            try:
                found = to_plain(call(text, parameters=one))
            except InvalidRequestError as error:
                found = {"error": str(error)}
            is_list = task == "classify" and isinstance(found, list)
            assert ([found] if is_list else found) == expected[-1]
        rows = [{"inputs": text, "parameters": one} for one in each]
        with TemporaryDirectory() as name:
            source, output = write_rows(Path(name, "in.jsonl"), rows), Path(name, "out.jsonl")
            files = ("--input", source, "--output", output, "--on-error=report")
            done = fillmask("--task", task, "--bundle", bundles[task], "--threads=1", *files)
            assert done.code in {0, 2}, done.err
            lines = [json.loads(line) for line in output.read_bytes().splitlines()]
        field = FIELDS[task]
        for line, row, one in zip(lines, rows, expected, strict=True):
            result = one[0] if task == "classify" and isinstance(one, list) else one
            if task == "score":  # a rank among the texts of one request
                result.pop("rank", None)
            assert line == row | (one if "error" in one else {field: result})

    check()


FIELDS = {"fill-mask": "fills", "score": "score", "classify": "labels"}
FLAGS = {name: f"--{name.replace('_', '-')}" for rules in RULES.values() for name in rules}


@pytest.mark.parametrize("task", RULES)
def test_a_flag_means_the_same_value(task: str) -> None:
    # Without a model, as far as the options alone decide.
    argument = st.integers().map(str) | WORDS | st.sampled_from([*CHOICES, "²", "٣", "1" * 5_000])

    @given(st.sampled_from(sorted(set(RULES[task]) - {"targets", "span"})), argument)
    def check(name: str, given_text: str) -> None:
        [*arguments] = "a [MASK]", f"--task={task}", f"{FLAGS[name]}={given_text}"
        command = parse_arguments(arguments).command
        assert isinstance(command, TextCommand)
        is_number = RULES[task][name][1][:1] == ("whole number",) and given_text.isdecimal()
        value = int(given_text[:20]) if is_number else given_text
        results = []
        for one in (command.parameters, {name: value}):
            try:
                results.append(read(task, one))
            except (InvalidRequestError, CommandError) as error:
                results.append(str(error))
        assert results[0] == results[1]

    check()
