"""Memory of a request from the first pass to the end of the response, before any pass runs.

A small request may have a large response, because each fill repeats its whole text.
"""

import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache, singledispatch
from itertools import accumulate
from typing import NamedTuple
from weakref import WeakKeyDictionary

from pydantic_core import to_json

from fillmask.errors import InvalidRequestError
from fillmask.tasks.classify.pipeline import PlannedLabels
from fillmask.tasks.fill_mask.plan import FillPlan, PlannedFills
from fillmask.tasks.fill_mask.targets import Targets
from fillmask.tasks.score.plan import PlannedScores
from fillmask.tasks.sparse.pipeline import PlannedVectors
from fillmask.tokenization.encoded_text import EncodedText

MAX_RESPONSE_BYTES = 5 * 2**20
# memory contains the JSON twice, as a list of parts and as the joined body
_JSON_COPIES = 2

# JSON of a fill without its text and tokens, and JSON of a token with its id and two copies of its
# text
_FILL_JSON_BYTES, _TOKEN_JSON_BYTES = 190, 60
# JSON of a token id of a target, and of a rejected target without its text and its error
_ID_JSON_BYTES, _REJECTED_JSON_BYTES = 8, 30
# a fill as an object, with its numbers and the header of its string
_FILL_BYTES = 350
# a queued or running pass, with its queue entry, its arrays and its caller's task
_FILL_PASS_BYTES = 6_000
# one target at one mask, with an id, a log-probability and a sum of log-probabilities
_TARGET_SCORE_BYTES = 28

# one pass, with its queue entry, its arrays, and its score as an object and as JSON
_SCORE_PASS_BYTES = 3_000
# a target of a pass with its id and its log-probability, also as objects and as JSON, and its JSON
_TARGET_BYTES, _TARGET_JSON_BYTES = 120, 26

# one pass with its queue entry and its arrays, and the logit of a label
_LABEL_PASS_BYTES, _LOGIT_BYTES = 2_000, 4
# a label's score as an object, and as JSON without its name
_LABEL_BYTES, _LABEL_JSON_BYTES = 90, 45

# a dimension of a sparse vector in arrays, as Python objects, and as JSON with its token
_DIMENSION_BYTES, _DIMENSION_OBJECT_BYTES, _DIMENSION_JSON_BYTES = 12, 320, 40
# writing this many dimensions takes about as long as a switch to another thread allows
MAX_LOOP_DIMENSIONS = 1_000


@singledispatch
def memory_bytes(planned: object) -> int:
    """Return the upper bound of the memory of a request.

    Raises:
        InvalidRequestError: the response can exceed MAX_RESPONSE_BYTES as JSON.
    """
    raise NotImplementedError(planned)


@memory_bytes.register
def _of_fills(planned: PlannedFills) -> int:
    json_bytes = all_bytes = 0
    for plan in planned.plans.values():
        text, lists, top_k, targets = plan.text, plan.lists, plan.top_k, plan.targets
        fills = lists * top_k
        fill_bytes = len(to_json(text)) + _FILL_JSON_BYTES + _max_tokens(plan) * _TOKEN_JSON_BYTES
        json_bytes += fills * fill_bytes
        # Python stores a text with two bytes per character if any character is beyond Latin-1
        text_bytes = max(sys.getsizeof(text), 2 * len(text))
        if targets is not None:
            sizes = _sizes_of(targets)
            json_bytes += lists * (sizes.json_bytes[top_k] + sizes.rejected_json_bytes)
            if sizes.has_non_bmp:
                text_bytes = 4 * len(text)
            all_bytes += _TARGET_SCORE_BYTES * plan.masks * len(targets)
        all_bytes += fills * (text_bytes + _FILL_BYTES) + plan.passes * _FILL_PASS_BYTES
    _check_size(json_bytes, "Use fewer texts, masks or fills.")
    return all_bytes + _JSON_COPIES * json_bytes


@memory_bytes.register
def _of_scores(planned: PlannedScores) -> int:
    # each pass copies the ids of its text and of the targets
    targets = sum(len(plan.scored) * len(plan.targets) for plan in planned.plans)
    _check_size(_TARGET_JSON_BYTES * targets, "Use fewer texts or targets.")
    return _TARGET_BYTES * targets + sum(
        len(plan.scored) * (_SCORE_PASS_BYTES + plan.words.input_ids.nbytes)
        for plan in planned.plans
    )


@memory_bytes.register
def _of_labels(planned: PlannedLabels) -> int:
    by_count = _label_json_bytes(planned.names)
    json_bytes = sum(by_count[count] for count in planned.counts)
    _check_size(json_bytes, "Use fewer texts or a smaller top_k.")
    pass_bytes = _LABEL_PASS_BYTES + _LOGIT_BYTES * len(planned.names)
    return (
        sum(pass_bytes + one.input_ids.nbytes for one in planned.encoded)
        + _LABEL_BYTES * sum(planned.counts)
        + _JSON_COPIES * json_bytes
    )


@memory_bytes.register
def _of_vectors(planned: PlannedVectors) -> int:
    return sum(
        _LABEL_PASS_BYTES + one.input_ids.nbytes + _DIMENSION_BYTES * most
        for one, most in zip(planned.texts, planned.dimensions, strict=True)
        if isinstance(one, EncodedText)
    )


def vector_json_bytes(dimensions: int) -> int:
    """Return the upper bound of the memory of the JSON of sparse vectors, with its objects.

    Args:
        dimensions: number of the actual dimensions of all vectors, because a trained model uses
            few of its own.

    Raises:
        InvalidRequestError: the response can exceed MAX_RESPONSE_BYTES.
    """
    json_bytes = _DIMENSION_JSON_BYTES * dimensions
    _check_size(json_bytes, "Use fewer texts or a smaller top_n.")
    return _DIMENSION_OBJECT_BYTES * dimensions + _JSON_COPIES * json_bytes


class _TargetSizes(NamedTuple):
    """Sizes of the targets of a list.

    Attributes:
        json_bytes: JSON that the k largest targets add to a list of fills, by k.
        rejected_json_bytes: JSON that the rejected targets add to a list of fills.
        has_non_bmp: true if a target has a character beyond U+FFFF. Python stores such a text with
            four bytes per character.
    """

    json_bytes: Sequence[int]
    rejected_json_bytes: int
    has_non_bmp: bool


# clients often rank the same list of words, whose targets the pipeline caches
_target_sizes: WeakKeyDictionary[Targets, _TargetSizes] = WeakKeyDictionary()


def _sizes_of(targets: Targets) -> _TargetSizes:
    sizes = _target_sizes.get(targets)
    if sizes is None:
        sizes = _TargetSizes(
            # a fill contains its target twice
            _largest_sums(
                2 * len(to_json(text)) + _ID_JSON_BYTES * max(len(spaced), len(glued))
                for text, spaced, glued in zip(
                    targets.texts, targets.spaced.ids, targets.glued.ids, strict=True
                )
            ),
            sum(
                len(to_json(one.token_str)) + len(to_json(one.error)) + _REJECTED_JSON_BYTES
                for one in targets.rejected
            ),
            any(max(text) > "\uffff" for text in targets.texts),
        )
        _target_sizes[targets] = sizes
    return sizes


@lru_cache(maxsize=32)  # models with labels in a process
def _label_json_bytes(names: tuple[str, ...]) -> Sequence[int]:
    """Return the JSON size of the k labels with the longest names, by k."""
    return _largest_sums(len(to_json(name)) + _LABEL_JSON_BYTES for name in names)


def _largest_sums(sizes: Iterable[int]) -> Sequence[int]:
    """Return the sum of the k largest sizes, by k."""
    return (0, *accumulate(sorted(sizes, reverse=True)))


def _max_tokens(plan: FillPlan) -> int:
    """Return the maximum number of tokens of a fill.

    The result is 0 for targets, because the JSON size of targets already includes their tokens.
    """
    if plan.targets is not None:
        return 0
    if plan.options.strategy == "joint":
        return plan.masks
    return plan.options.max_word_tokens if plan.options.granularity == "word" else 1


def _check_size(json_bytes: int, advice: str) -> None:
    if json_bytes > MAX_RESPONSE_BYTES:
        raise InvalidRequestError(
            f"The response could have {json_bytes} bytes; the limit is {MAX_RESPONSE_BYTES}. "
            f"{advice}"
        )
