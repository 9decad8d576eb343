"""What the command does with the results of each task: rows of files, and a table."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import to_json
from tqdm.utils import disp_len

from fillmask.bundles.bundle import Bundle
from fillmask.cli.errors import CommandError
from fillmask.cli.formats.base import Fields
from fillmask.cli.formats.output import ROW, Layout
from fillmask.cli.terminal import DIM, GAP, Style, format_number, shorten, visible
from fillmask.errors import quote
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import ValidationContext
from fillmask.tasks.classify.parameters import ClassifyParameters
from fillmask.tasks.classify_tokens.parameters import ClassifyTokensParameters
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.fill_mask.results import (
    FILL_FIELDS,
    Fill,
    JointFill,
    TargetFill,
    WordFill,
)
from fillmask.tasks.score.results import TextScore
from fillmask.tasks.sparse.results import SparseEmbedding
from fillmask.tasks.task import (
    CLASSIFY,
    CLASSIFY_TOKENS,
    FILL_MASK,
    SCORE,
    SPARSE,
    TASKS,
    Task,
    tasks_of,
)

DEFAULT_TASK = FILL_MASK.name

# types of columns
_TOKEN = {
    "token": int,
    "token_str": str,
    "part": str,  # null for a single text
    "start": int,
    "end": int,
    "log_prob": float,
    "surprisal": float,
}
_SCORE = {"log_prob": float, "pseudo_perplexity": float, "tokens": [_TOKEN]}
_LABEL = {"label": str, "score": float}
_ENTITY = {
    "entity_group": str,  # null for the strategy none, which has the next and the index instead
    "entity": str,
    "score": float,
    "index": int,
    "word": str,
    "start": int,
    "end": int,
    "part": str,  # null for a single text
}
_VECTOR = {"indices": [int], "values": [np.float32], "tokens": [str]}


class Done(NamedTuple):
    """A text with its result."""

    bundle: Bundle
    text: InputText
    parameters: Any
    result: Any


class TaskRows:
    """Rows and table of a task. The base class writes results as JSON."""

    _layout = Layout("result", {"result": str}, lambda one: {"result": one.decode()}, ("result",))

    def __init__(self, task: Task) -> None:
        self.task = task

    def read_parameters(self, parameters: object, limits: Limits) -> Any:
        """Validate parameters by the rules that HTTP and Python share.

        Raises:
            InvalidRequestError: a parameter is invalid.
        """
        return self.task.parameters.read(parameters, ValidationContext(limits))

    def answer(self, result: Any) -> bytes:
        """Return a result as the answer of a row, one line of JSON."""
        return b"".join(self.task.to_json(result))

    def layout(self, parameters: Any, *, row_parameters: bool) -> Layout:  # noqa: ARG002 - for fills
        """Return the layout of answers.

        It depends on the parameters of rows without their own, and on whether rows may have some,
        but not on these, so that all shards have the same columns.
        """
        return self._layout

    def table(self, done: Done, style: Style) -> Iterator[str]:  # noqa: ARG002 - for tables
        """Format a result as the lines of a table for a terminal."""
        yield self.answer(done.result).decode()


class FillMaskRows(TaskRows):
    """Fills of the masks of a text."""

    def layout(self, parameters: FillMaskParameters, *, row_parameters: bool) -> Layout:
        kinds: list[type[Fill]] = [Fill]
        kinds += [TargetFill] * bool(parameters.targets)
        kinds += [WordFill] * (parameters.granularity == "word")
        kinds += [JointFill] * (parameters.strategy == "joint")
        present = {field.name for kind in kinds for field in fields(kind)}
        if parameters.on_long_text != "window":
            present.remove("window")
        given = [name for name in FILL_FIELDS if row_parameters or name in present]
        # Fills with any options have this type. Fields that a fill lacks are null.
        types = {"fills": [{"mask": int, **FILL_FIELDS}]}
        return Layout("fills", types, _all_fills, (ROW, "mask", "rank", *given), _ranked_fills)

    def table(self, done: Done, style: Style) -> Iterator[str]:
        masks: Sequence[Sequence[Fill]] = done.result.masks
        for number, fills in enumerate(masks, 1):
            if number > 1:
                yield ""
            if len(masks) > 1:
                yield style.apply(DIM, f"Mask {number}")
            if not fills:
                yield "No fills."
                continue
            if window := fills[0].window:
                yield style.apply(
                    DIM, f"The model reads characters {window[0]} to {window[1]} of the text."
                )
            yield from _fill_lines(str(done.text), fills, style)


def _masks(answer: bytes) -> Iterator[tuple[int, list[Fields]]]:
    """Return the number and the fills of each mask. Joint fills form a single list."""
    fills: list[Any] = json.loads(answer)
    return enumerate(fills if fills and isinstance(fills[0], list) else [fills], 1)


def _all_fills(answer: bytes) -> Fields:
    return {"fills": [{"mask": mask, **fill} for mask, fills in _masks(answer) for fill in fills]}


def _ranked_fills(answer: bytes) -> Iterator[Fields]:
    for mask, fills in _masks(answer):
        for rank, fill in enumerate(fills, 1):
            yield {"mask": mask, "rank": rank, **fill}


def _fill_lines(text: str, fills: Sequence[Fill], style: Style) -> Iterator[str]:
    """Format the fills of one mask, each with the text around the first change."""
    pairs = zip(text, fills[0].sequence, strict=False)
    place = next((place for place, (a, b) in enumerate(pairs) if a != b), len(text))
    token_cells = max(disp_len(visible(fill.token_str)) for fill in fills)
    for fill in fills:
        number, share = format_number(fill.score), fill.score
        if isinstance(fill, TargetFill):
            share = fill.target_score
            number += GAP + format_number(share)
        padding = " " * (token_cells - disp_len(visible(fill.token_str)))
        head = style.line(number, share, fill.token_str) + padding + GAP
        room = None if style.width is None else style.width - disp_len(head)
        yield f"{head}{shorten(visible(fill.sequence), place, room)}".rstrip()


class ScoreRows(TaskRows):
    """Score of a text and of its tokens."""

    _layout = Layout("score", _SCORE, json.loads, ("log_prob", "pseudo_perplexity"))

    def answer(self, result: TextScore) -> bytes:
        """Return a score without a rank, because each row is a separate request."""
        score = result.to_dict()
        del score["rank"]
        return json.dumps(score, ensure_ascii=False, separators=(",", ":")).encode()

    def table(self, done: Done, style: Style) -> Iterator[str]:
        """Give the token with the highest surprisal a full bar."""
        score: TextScore = done.result
        yield style.apply(
            DIM,
            f"Log-probability {score.log_prob:.4f}, pseudo-perplexity "
            f"{score.pseudo_perplexity:.4f}. Surprisal of each token in bits:",
        )
        largest = max(token.surprisal for token in score.tokens)
        for token in score.tokens:
            share = token.surprisal / largest if largest > 0 else 0.0
            yield style.line(f"{token.surprisal:7.2f}", share, token.token_str)


class ClassifyRows(TaskRows):
    """Labels of a text with their scores. Columns have the best label, and the list of all."""

    def layout(self, parameters: ClassifyParameters, *, row_parameters: bool) -> Layout:  # noqa: ARG002 - for fills
        types = {**_LABEL, "labels": [_LABEL]}
        cells = tuple(_LABEL if parameters.top_k is None else types)
        return Layout("labels", types, _best_and_all_labels, cells)

    def table(self, done: Done, style: Style) -> Iterator[str]:
        """Give probabilities bars, and logits none."""
        head = done.bundle.classification
        assert head is not None  # noqa: S101 - `check_bundle` rejects other bundles
        by_default = "none" if head.problem_type == "regression" else None
        has_logits = (done.parameters.function_to_apply or by_default) == "none"
        for one in done.result:
            if has_logits:
                yield style.line(f"{one.score:9.4f}", None, one.label)
            else:
                yield style.line(format_number(one.score), one.score, one.label)


def _best_and_all_labels(answer: bytes) -> Fields:
    labels = json.loads(answer)
    return {**labels[0], "labels": labels}


class ClassifyTokensRows(TaskRows):
    """Entities of a text, in CSV one a line. A text without any has one empty line there."""

    def layout(self, parameters: ClassifyTokensParameters, *, row_parameters: bool) -> Layout:
        by_token = parameters.aggregation_strategy == "none"
        absent = {"entity_group"} if by_token else {"entity", "index"}
        given = [name for name in _ENTITY if row_parameters or name not in absent]
        types = {"entities": [_ENTITY]}
        return Layout("entities", types, _all_entities, (ROW, *given), _each_entity)

    def table(self, done: Done, style: Style) -> Iterator[str]:
        if not done.result:
            yield "No entities."
        cells = max((disp_len(visible(one.label)) for one in done.result), default=0)
        for one in done.result:
            label = one.label + " " * (cells - disp_len(visible(one.label)))
            yield style.line(format_number(one.score), one.score, f"{label}{GAP}{one.word}")


def _all_entities(answer: bytes) -> Fields:
    return {"entities": [dict.fromkeys(_ENTITY) | one for one in json.loads(answer)]}


def _each_entity(answer: bytes) -> Iterator[Fields]:
    yield from json.loads(answer) or [{}]


class SparseRows(TaskRows):
    """Sparse vector of a text."""

    _layout = Layout("vector", _VECTOR, json.loads, tuple(_VECTOR))

    def answer(self, result: SparseEmbedding) -> bytes:
        """Return the tokens next to their ids."""
        return to_json(result.to_dict())

    def table(self, done: Done, style: Style) -> Iterator[str]:
        """Give the largest weight a full bar."""
        weights = zip(done.result.values.tolist(), done.result.tokens, strict=True)
        ranked = sorted(weights, key=lambda one: -one[0])
        for weight, token in ranked:
            yield style.line(f"{weight:7.4f}", weight / ranked[0][0], token)


_ROWS: dict[str, type[TaskRows]] = {
    FILL_MASK.name: FillMaskRows,
    SCORE.name: ScoreRows,
    CLASSIFY.name: ClassifyRows,
    CLASSIFY_TOKENS.name: ClassifyTokensRows,
    SPARSE.name: SparseRows,
}


def rows_of(task: str) -> TaskRows:
    """Return the rows of a task by its name."""
    return _ROWS.get(task, TaskRows)(TASKS[task])


def check_bundle(task: Task, bundle: Bundle, *, pairs: bool) -> None:
    """Reject a bundle that lacks the task, or pairs of texts that the command asks for.

    Raises:
        CommandError: the bundle cannot do this.
    """
    allowed = [one.name for one in tasks_of(bundle.tasks)]
    if task.name not in allowed:
        raise CommandError(
            f"The model {quote(bundle.name)} has only the task {bundle.tasks[0]}; --task must be "
            f"{' or '.join(allowed)} (got {task.name})."
        )
    if pairs and not bundle.pairs:
        raise CommandError(
            f"The model {quote(bundle.name)} reads single texts; use a model that reads pairs, or "
            "remove the second text."
        )
