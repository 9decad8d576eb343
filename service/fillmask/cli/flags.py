"""Request parameters of the tasks as flags of the command.

`fillmask.parameters` describes them, and validates their values later, in the same words as over
HTTP.
"""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic.fields import FieldInfo

from fillmask.cli.errors import CommandError
from fillmask.errors import quote
from fillmask.tasks.task import TASKS


class Parameter(NamedTuple):
    """A request parameter as a flag of the command."""

    metavar: str
    help: str
    read: Callable[[str], object]  # converts the argument to a JSON value


def _kinds(annotation: Any) -> Iterator[Any]:
    """Yield the types of an optional or annotated type, and the values of a Literal."""
    annotation = getattr(annotation, "__value__", annotation)
    if get_origin(annotation) is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif get_origin(annotation) is Literal or type(None) in get_args(annotation):
        for one in get_args(annotation):
            yield from _kinds(one)
    elif annotation is not type(None):
        yield annotation


def _number(argument: str) -> int | str:
    """Return a number as an integer, and any other argument unchanged."""
    # 20 digits exceed every limit. Python refuses to convert thousands of digits.
    return int(argument[:20]) if argument.isdecimal() else argument


def _decimal(argument: str) -> float | str:
    """Return a number, and any other argument unchanged."""
    try:
        return float(argument)
    except ValueError:
        return argument


def _span(argument: str) -> list[int | str]:
    """Return the two numbers of an argument such as 4:10.

    Raises:
        CommandError: the argument has another form.
    """
    if not re.fullmatch(r"[0-9]+:[0-9]+", argument):
        raise CommandError(f"--span must be START:END, such as 4:10 (got {quote(argument)}).")
    return [_number(bound) for bound in argument.split(":")]


_FORMS: dict[Any, tuple[str, Callable[[str], object]]] = {
    bool: ("true|false", lambda argument: {"true": True, "false": False}.get(argument, argument)),
    int: ("N", _number),
    float: ("W", _decimal),
    str: ("TEXT", str),
    tuple[str, ...]: ("TEXT,TEXT", lambda argument: argument.split(",") if argument else []),
    tuple: ("START:END", _span),
}


def _parameter(fields: dict[str, FieldInfo]) -> Parameter:
    """Return a parameter from the fields of the tasks that have it."""
    kinds = list(dict.fromkeys(kind for one in fields.values() for kind in _kinds(one.annotation)))
    form, read = _FORMS[str]
    if isinstance(kinds[0], str):
        form = "|".join(kinds)
    else:
        form, read = _FORMS.get(kinds[0]) or _FORMS[get_origin(kinds[0]) or kinds[0]]
    tasks: dict[str, list[str]] = {}
    for task, one in fields.items():
        tasks.setdefault(str(one.description), []).append(task)
    described = [
        f"[{', '.join(names)}] {text}" if len(tasks) > 1 else text for text, names in tasks.items()
    ]
    return Parameter(form, " ".join(described).replace("%", "%%"), read)


def parameter_flags() -> dict[str, Parameter]:
    """Return the parameters of all tasks, by name.

    `targets` are not among them. They have flags of their own, for one target and for a file.
    """
    by_name: dict[str, dict[str, FieldInfo]] = {}
    for task in TASKS.values():
        for name, field in task.parameters.model_fields.items():
            by_name.setdefault(name, {})[task.name] = field
    return {name: _parameter(fields) for name, fields in by_name.items() if name != "targets"}
