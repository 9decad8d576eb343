"""A call from Python: texts with their checked options."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText, TextPair, check_unicode, read_inputs
from fillmask.parameters.validation import (
    OnError,
    TaskParameters,
    ValidationContext,
    check_on_error,
    check_same_length,
)
from fillmask.parameters.values import merge_parameters, refusing


class CallKeywords(TypedDict, total=False):
    """Keyword arguments that the calls of all tasks have in common."""

    parameters: Iterable[Mapping[str, Any] | None] | None
    on_error: OnError | None


@dataclass(frozen=True, slots=True)
class Call:
    """Texts with their checked options.

    Attributes:
        options: options of each text.
        single: True if the caller gave one text instead of many.
        report_errors: True if the results contain the errors of invalid texts.
    """

    texts: list[InputText]
    options: list[Any]
    single: bool
    report_errors: bool

    def label(self, index: int) -> str:
        """Return the name of a text in messages, such as inputs or inputs[3]."""
        return f"inputs[{index}]" if len(self.texts) > 1 else "inputs"


def read_call(
    model: type[TaskParameters],
    inputs: object,
    keywords: Mapping[str, object],
    limits: Limits,
) -> Call:
    """Check the arguments of a call.

    Args:
        model: parameters of the task.
        inputs: a text, a pair, or a list of these (`to_list`).
        keywords: parameters of all texts, and those of `CallKeywords`.

    Raises:
        InvalidRequestError: an argument is invalid. The message describes the first error.
    """
    context = ValidationContext(limits)
    common = {name: to_list(value) for name, value in keywords.items()}
    given = common.pop("parameters", None)
    with refusing():
        _check_unicode(common)
        report_errors = check_on_error(common.pop("on_error", None)) == "report"
        texts = read_inputs(inputs, context.texts, limits.max_texts)
        if isinstance(given, list):
            given = [_merge(common, one) for one in given]
            for one in given:
                _check_unicode(one)
        checked = model.read_each(_merge(common, given), context)
        check_same_length(checked, texts, context)
        single = not isinstance(texts, list)
        each = texts if isinstance(texts, list) else [texts]
        own = checked if isinstance(checked, list) else [checked] * len(each)
        call = Call(each, [one.options for one in own], single, report_errors)
        for index, text in enumerate(each):
            check_unicode(text, call.label(index))
    return call


def _merge(common: dict[str, object], own: object) -> object:
    if not isinstance(own, Mapping):
        return common if own is None else own
    return merge_parameters(common, {name: to_list(value) for name, value in own.items()})


def _check_unicode(options: object) -> None:
    if isinstance(options, dict):
        for name, value in options.items():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    check_unicode(text, name)


def to_list(value: object) -> object:
    """Return a tuple, an array, a column or another iterable of values as a list."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str | bytes | TextPair | list) or not isinstance(value, Iterable):
        return value
    try:
        return list(value)
    except TypeError:  # an array without axes
        return value
