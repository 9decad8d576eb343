"""Columns that Parquet adds for the results of each task."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import pyarrow as pa

from fillmask.cli.formats.answers import fills_of
from fillmask.cli.tasks.base import TaskName
from fillmask.results.fills import FILL_FIELDS

_TYPES = {float: pa.float64(), int: pa.int32(), str: pa.string()}


def _type_of(field: Any) -> pa.DataType:
    """Return the Arrow type of a field, which is optional, a tuple of one type, or plain."""
    if field in _TYPES:
        return _TYPES[field]
    [inner] = {one for one in get_args(field) if one not in {type(None), Ellipsis}}
    return _type_of(inner) if type(None) in get_args(field) else pa.list_(_type_of(inner))


# Fills with any options have this type. Fields that a fill lacks are null.
FILL_TYPE = pa.struct(
    [
        ("mask", pa.int32()),  # number of the mask in its text, from 1
        *((name, _type_of(field)) for name, field in FILL_FIELDS.items()),
    ]
)
TOKEN_SCORE_TYPE = pa.struct(
    [
        ("token", pa.int32()),
        ("token_str", pa.string()),
        ("part", pa.string()),  # "text" or "text_pair" in a pair, otherwise null
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("log_prob", pa.float64()),
        ("surprisal", pa.float64()),
    ]
)
LABEL_TYPE = pa.struct([("label", pa.string()), ("score", pa.float64())])


@dataclass(frozen=True, slots=True)
class ParquetLayout:
    """Layout of the results of a task.

    Attributes:
        columns: the added columns.
        values: function that returns the values of these columns for an answer.
    """

    columns: pa.Schema
    values: Callable[[bytes], Mapping[str, Any]]


def _fill_values(answer: bytes) -> Mapping[str, Any]:
    """Return the fills of all masks as one list, each with the number of its mask."""
    masks = enumerate(fills_of(answer), 1)
    return {"fills": [{"mask": mask, **fill} for mask, fills in masks for fill in fills]}


def _label_values(answer: bytes) -> Mapping[str, Any]:
    """Return the best label and all labels."""
    labels = json.loads(answer)
    return {**labels[0], "labels": labels}


LAYOUTS: Mapping[TaskName, ParquetLayout] = {
    "fill-mask": ParquetLayout(pa.schema([("fills", pa.list_(FILL_TYPE))]), _fill_values),
    "score": ParquetLayout(
        pa.schema(
            [
                ("log_prob", pa.float64()),
                ("pseudo_perplexity", pa.float64()),
                ("tokens", pa.list_(TOKEN_SCORE_TYPE)),
            ]
        ),
        json.loads,
    ),
    "classify": ParquetLayout(
        pa.schema(
            [
                ("label", pa.string()),
                ("score", pa.float64()),
                ("labels", pa.list_(LABEL_TYPE)),
            ]
        ),
        _label_values,
    ),
    "sparse": ParquetLayout(
        pa.schema(
            [
                ("indices", pa.list_(pa.int32())),
                ("values", pa.list_(pa.float32())),
                ("tokens", pa.list_(pa.string())),
            ]
        ),
        json.loads,
    ),
}
