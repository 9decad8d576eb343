"""A call from Python: texts with their checked options."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fillmask.errors import InvalidRequestError
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText, TextPair, plain_text, read_inputs
from fillmask.parameters.types import OnErrorField
from fillmask.parameters.validation import (
    ClientObject,
    TaskParameters,
    ValidationContext,
    check_same_length,
)
from fillmask.parameters.values import merge_parameters


@dataclass(frozen=True, slots=True)
class Call:
    """Texts with their checked parameters.

    Attributes:
        texts: the texts, and in place of an invalid one the error that its result reports.
        field: name of the texts in error messages.
    """

    texts: Sequence[InputText | InvalidRequestError]
    parameters: Sequence[Any]
    single: bool = False
    report_errors: bool = False
    field: str = "inputs"


class _Policy(ClientObject):
    on_error: OnErrorField = None


def read_call(
    model: type[TaskParameters],
    inputs: object,
    keywords: Mapping[str, object],
    limits: Limits,
) -> Call:
    """Check the arguments of a call. Everything that belongs to the caller is read here.

    Raises:
        InvalidRequestError: an argument is invalid. The message describes the first error.
    """
    context, texts = ValidationContext(limits), to_list(inputs)
    common = _read_options(keywords)
    own = common.pop("parameters", None)
    policy = _Policy.check({"on_error": common.pop("on_error", None)}, context)
    report_errors = policy.on_error == "report"
    if not isinstance(texts, list) or texts:  # in Python, no texts have no results
        texts = read_inputs(
            texts,
            context.texts,
            limits.max_texts,
            pairs=model.reads_pairs,
            report_errors=report_errors,
        )
    given = [_merge(common, one) for one in own] if isinstance(own, list) else _merge(common, own)
    checked = model.read_each(given, context)
    check_same_length(checked, texts, context)
    single = not isinstance(texts, list)
    each = texts if isinstance(texts, list) else [texts]
    if not isinstance(checked, list):
        return Call(each, [checked] * len(each), single, report_errors)
    return Call(each, checked, single, report_errors)


def _merge(common: dict[str, object], own: object) -> object:
    if isinstance(own, Mapping):
        return merge_parameters(common, _read_options(own))
    return common if own is None else own


def _read_options(options: Mapping[str, object]) -> dict[str, object]:
    read = {name: to_list(value) for name, value in options.items()}
    for name, value in read.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                plain_text(text, name)
    return read


def to_list(value: object) -> object:
    """Return a tuple, an array, a column or another iterable of values as a list.

    A table is not such an iterable, because pandas iterates over the names of its columns.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str | bytes | TextPair | list) or not isinstance(value, Iterable):
        return value
    if getattr(value, "ndim", 1) != 1:  # a table, or an array without axes
        return value
    return list(iter(value))  # list(value) trusts the length that an object says it has
