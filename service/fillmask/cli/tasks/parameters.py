"""Request parameters of the tasks as flags of the command.

`fillmask.parameters` validates the values later, in the same words as over HTTP.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

from fillmask.cli.errors import CommandError
from fillmask.errors import quote
from fillmask.parameters.classify import FunctionToApply
from fillmask.parameters.fill_mask import (
    DEFAULT_TOP_K,
    DEFAULT_WORD_TOKENS,
    MAX_WORD_TOKENS,
    Granularity,
    Order,
    Strategy,
)
from fillmask.parameters.score import Part, Variant
from fillmask.parameters.sparse import InputType


class Parameter(NamedTuple):
    """A request parameter as a flag of the command.

    Attributes:
        metavar: form of the value in the help.
        read: function that converts the argument to a JSON value.
    """

    metavar: str
    help: str
    read: Callable[[str], object] = str


def _choice(choices: Any, meaning: str, *, first_is_default: bool = True) -> Parameter:
    """Return a parameter with the values of a named Literal."""
    values = get_args(choices.__value__)
    default = f" (default {values[0]})" if first_is_default else ""
    return Parameter("|".join(values), f"{meaning}{default}")


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


PARAMETERS: dict[str, Parameter] = {
    "top_k": Parameter(
        "N",
        f"maximum fills per mask (default {DEFAULT_TOP_K}; with targets, all) or labels per text",
        _number,
    ),
    "granularity": _choice(
        Granularity, "fill a mask with a single token or with a word of several tokens"
    ),
    "max_word_tokens": Parameter(
        "N",
        f"maximum tokens per word, up to {MAX_WORD_TOKENS} (default {DEFAULT_WORD_TOKENS})",
        _number,
    ),
    "strategy": _choice(Strategy, "fill the masks of a text independently or jointly"),
    "order": _choice(Order, "order of joint filling, by confidence or from left to right"),
    "on_long_text": Parameter(
        "error|window|truncate",
        "reject a text that exceeds the model's input, read windows around its masks, or cut the "
        "end of a text without masks (default error)",
    ),
    "variant": _choice(Variant, "score a token without or with the later tokens of its word"),
    "prefix": Parameter("TEXT", "score only the tokens after these first characters of the text"),
    "span": Parameter(
        "START:END", "score only the tokens from character START up to character END", _span
    ),
    "part": _choice(Part, "score only the tokens of one part of a pair", first_is_default=False),
    # the default depends on the model
    "function_to_apply": _choice(
        FunctionToApply, "function from logits to the scores of labels", first_is_default=False
    ),
    "input_type": _choice(InputType, "make sparse vectors of documents or of queries"),
    "top_n": Parameter(
        "N", "maximum dimensions of a sparse vector (default the maximum of the model)", _number
    ),
    "min_weight": Parameter("W", "smallest weight of a sparse vector (default 0)", _decimal),
}
