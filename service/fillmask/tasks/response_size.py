"""Estimates of a response's size and of a request's memory before the first pass."""

import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pydantic_core import to_json

from fillmask.errors import InvalidRequestError
from fillmask.tasks.plan import FillPlan

# Each fill repeats its whole text, so a response can be far larger than its request.
MAX_RESPONSE_BYTES = 5 * 2**20
# Building a response of this size takes 0.3 ms. A switch to another thread and back takes 0.03 ms.
LARGE_RESPONSE_CHARS = 100_000
# JSON of a fill without its text and tokens, and JSON of a token with its id and two copies of its
# text
_FRAME_BYTES, _TOKEN_BYTES = 190, 60
# sorting this many targets or labels takes 0.3 ms
LARGE_RANKING = 5_000
# creating a fill takes about as long as copying this many characters
_FILL_COST_CHARS = 500

# a fill as an object, with its numbers and the header of its string
_FILL_BYTES = 350
# memory contains the JSON twice, as a list of parts and as the joined body
JSON_COPIES = 2
# a queued or running pass, with its queue entry, its arrays and its caller's task
_PASS_BYTES = 6_000
# one target at one mask, with an id, a log-probability and a sum of log-probabilities
_SCORE_BYTES = 28

# function that reserves a number of bytes for a request, or raises OverloadedError if too little
# memory is free
Reserve = Callable[[int], None]


def reserve_nothing(_memory_bytes: int) -> None:
    """Reserve nothing, for callers that process one request at a time."""


class ResponseSize(NamedTuple):
    """Estimated size of a response.

    Attributes:
        json_bytes: upper bound of the size of the JSON.
        memory_bytes: upper bound of the memory from the first pass to the end of the response.
        is_large: true if ranking or serializing takes too long for the event loop.
    """

    json_bytes: int
    memory_bytes: int
    is_large: bool


def estimate_response_size(
    plans: Iterable[FillPlan], max_bytes: int = MAX_RESPONSE_BYTES
) -> ResponseSize:
    """Estimate the size of the response to all texts of a request.

    Raises:
        InvalidRequestError: the response can exceed `max_bytes`.
    """
    json_bytes = memory_bytes = cost_chars = ranked = 0
    for plan in plans:
        text, masks, targets = plan.text, plan.masks, plan.targets
        # joint filling returns one list for all masks
        lists = 1 if plan.options.strategy == "joint" else masks
        fills = lists * plan.top_k
        plan_bytes = fills * (len(to_json(text)) + _FRAME_BYTES + _max_tokens(plan) * _TOKEN_BYTES)
        # Python stores a text with two bytes per character if any character is beyond Latin-1
        text_bytes = max(sys.getsizeof(text), 2 * len(text))
        if targets is not None:
            ranked += masks * len(targets)
            plan_bytes += lists * (targets.json_bytes(plan.top_k) + targets.rejected_json_bytes)
            if targets.has_non_bmp:
                text_bytes = 4 * len(text)
            memory_bytes += _SCORE_BYTES * masks * len(targets)
        json_bytes += plan_bytes
        cost_chars += fills * (len(text) + _FILL_COST_CHARS)
        cost_chars += 0 if targets is None else lists * targets.rejected_json_bytes
        memory_bytes += fills * (text_bytes + _FILL_BYTES) + plan.passes * _PASS_BYTES
    if json_bytes > max_bytes:
        raise InvalidRequestError(
            f"The response could have {json_bytes} bytes; the limit is {max_bytes}. Use fewer "
            "texts, masks or fills."
        )
    return ResponseSize(
        json_bytes,
        memory_bytes + JSON_COPIES * json_bytes,
        ranked > LARGE_RANKING or cost_chars > LARGE_RESPONSE_CHARS,
    )


def _max_tokens(plan: FillPlan) -> int:
    """Return the maximum number of tokens of a fill.

    The result is 0 for targets, because the JSON size of targets already includes their tokens.
    """
    if plan.targets is not None:
        return 0
    if plan.options.strategy == "joint":
        return plan.masks
    return plan.options.max_word_tokens if plan.options.granularity == "word" else 1
