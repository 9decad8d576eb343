"""Size of an answer, and the memory that making it takes, before anything is computed."""

import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pydantic_core import to_json

from service.errors import InvalidRequestError
from service.tasks.plan import FillPlan

# Each fill repeats its whole text, so an answer can be far larger than its request.
MAX_ANSWER_BYTES = 5 * 2**20
# making an answer of this size takes 0.3 ms; going to another thread and back takes 0.03 ms
LONG_ANSWER_CHARS = 100_000
# of a fill in JSON beside its text and its tokens; of each token its id, and its text twice
_FRAME_BYTES, _TOKEN_BYTES = 190, 60
# so many targets are sorted in 0.3 ms
_LONG_RANKING = 5_000
# making a fill costs about as much as copying this many characters
_FILL_COST_CHARS = 500

# of a fill as an object: its numbers and the frame of its text
_FILL_BYTES = 350
# an answer in JSON is there in parts, and then whole
_JSON_COPIES = 2
# of a pass that waits or is computed: its place in the queue, its arrays, its caller's task
_PASS_BYTES = 6_000
# of a target at a mask: its id, its log-probability from the model and their sum
_SCORE_BYTES = 28

# takes the bytes that answering will hold; raises OverloadedError where there is no room for them
Reserve = Callable[[int], None]


def no_bound(_memory_bytes: int) -> None:
    """Reserve nothing: for callers that answer one request at a time."""


class ResponseSize(NamedTuple):
    """The size of an answer.

    Attributes:
        json_bytes: at most so many.
        memory_bytes: held at most, from the passes to the sent answer.
        long: whether ranking or writing it would stall the event loop.
    """

    json_bytes: int
    memory_bytes: int
    long: bool


def response_size(jobs: Iterable[FillPlan]) -> ResponseSize:
    """Sum up the answers to all texts of a request.

    Raises:
        InvalidRequestError: they are too long.
    """
    json_bytes = memory_bytes = cost_chars = ranked = 0
    for job in jobs:
        text, masks, targets = job.text, job.masks, job.targets
        # of masks filled together there is one list
        lists = 1 if job.options.strategy == "joint" else masks
        fills = lists * job.wanted
        job_bytes = fills * (len(to_json(text)) + _FRAME_BYTES + _tokens(job) * _TOKEN_BYTES)
        # a token from beyond Latin-1 makes two bytes of each character
        text_bytes = max(sys.getsizeof(text), 2 * len(text))
        if targets is not None:
            ranked += masks * len(targets)
            job_bytes += lists * (targets.json_bytes(job.wanted) + targets.refused_json_bytes)
            if targets.wide:
                text_bytes = 4 * len(text)
            memory_bytes += _SCORE_BYTES * masks * len(targets)
        json_bytes += job_bytes
        cost_chars += fills * (len(text) + _FILL_COST_CHARS)
        cost_chars += 0 if targets is None else lists * targets.refused_json_bytes
        memory_bytes += fills * (text_bytes + _FILL_BYTES) + job.passes * _PASS_BYTES
    if json_bytes > MAX_ANSWER_BYTES:
        raise InvalidRequestError(
            f"The answer would have up to {json_bytes} bytes; at most {MAX_ANSWER_BYTES} are "
            "allowed, so ask for fewer texts, masks or fills."
        )
    return ResponseSize(
        json_bytes,
        memory_bytes + _JSON_COPIES * json_bytes,
        ranked > _LONG_RANKING or cost_chars > LONG_ANSWER_CHARS,
    )


def _tokens(job: FillPlan) -> int:
    """Tokens of a fill at most; a target's are counted with its text."""
    if job.targets is not None:
        return 0
    if job.options.strategy == "joint":
        return job.masks
    return job.options.max_word_tokens if job.options.granularity == "word" else 1
