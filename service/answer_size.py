"""How large an answer will be, known before it is computed."""

from collections.abc import Iterable

from service.errors import InvalidRequestError
from service.fill_job import FillJob

# Each fill repeats its whole text, so an answer can be far larger than its request.
MAX_ANSWER_CHARS = 16 * 2**20
# making an answer of this size takes 0.3 ms; going to another thread and back takes 0.03 ms
LONG_ANSWER_CHARS = 100_000
# of a fill beside its text
_FRAME_CHARS = 100
# so many targets are sorted in 0.3 ms
_LONG_RANKING = 5_000
# making a fill costs about as much as copying this many characters
_FILL_COST_CHARS = 500


def is_long(jobs: Iterable[FillJob]) -> bool:
    """Whether the answer is long, or takes long to make.

    Raises:
        InvalidRequestError: it is too long.
    """
    chars = cost_chars = ranked = 0
    for job in jobs:
        masks, targets = job.masks, job.targets
        fills = masks * (job.wanted + (0 if targets is None else len(targets.refused)))
        chars += fills * (len(job.text) + _FRAME_CHARS)
        cost_chars += fills * (len(job.text) + _FILL_COST_CHARS)
        ranked += 0 if targets is None else masks * len(targets)
    if chars > MAX_ANSWER_CHARS:
        raise InvalidRequestError(
            f"The answer would have {chars} characters; at most {MAX_ANSWER_CHARS} are allowed, so "
            "ask for fewer texts, masks or fills."
        )
    return ranked > _LONG_RANKING or cost_chars > LONG_ANSWER_CHARS
