"""Plans of texts to fill, with what they take before any pass runs."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

from pydantic_core import to_json

from fillmask.tasks.fill_mask.joint import max_joint_passes
from fillmask.tasks.fill_mask.parameters import (
    DEFAULT_TOP_K,
    DEFAULT_WORD_TOKENS,
    FillMaskParameters,
)
from fillmask.tasks.fill_mask.target_passes import count_target_passes
from fillmask.tasks.fill_mask.targets import Targets
from fillmask.tasks.fill_mask.words import max_word_passes
from fillmask.tasks.pipeline import Size, is_large, largest_sums
from fillmask.tasks.result import RejectedText
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.windows import Window


@dataclass(frozen=True, slots=True, eq=False)
class FillPlan:
    """A tokenized text with its parameters, and the numbers that follow from them.

    Attributes:
        text: the client's text, or the joined text of a pair.
        targets: the only words and phrases to rank. None means the whole vocabulary.
        windows: one or more parts of the text, which the model reads.
        encoded: the tokens of each window.
        masks: number of masks in all windows.
        top_k: maximum number of fills per mask.
        lists: number of lists of fills. The joint strategy returns one list for all masks.
        tokens: number of tokens in all windows.
        passes: maximum number of model passes. The pass of a plain fill does not count.
    """

    text: str
    parameters: FillMaskParameters
    targets: Targets | None
    windows: Sequence[Window]
    encoded: Sequence[EncodedText]
    masks: int
    top_k: int
    lists: int
    tokens: int
    passes: int

    @classmethod
    def of(
        cls,
        text: str,
        parameters: FillMaskParameters,
        targets: Targets | None,
        windows: Sequence[Window],
    ) -> "FillPlan":
        encoded = [window.encoded for window in windows]
        masks = sum([len(one.mask_spans) for one in encoded])
        top_k, lists, passes = parameters.top_k or DEFAULT_TOP_K, masks, 0
        if targets is not None:
            top_k = min(parameters.top_k or len(targets), len(targets))
            passes = sum(count_target_passes(one, targets) for one in encoded)
        elif parameters.strategy == "joint":
            lists, passes = 1, max_joint_passes(masks, top_k)
        elif parameters.granularity == "word":
            passes = masks * max_word_passes(parameters.max_word_tokens or DEFAULT_WORD_TOKENS)
        tokens = sum([len(one.input_ids) for one in encoded])
        return cls(text, parameters, targets, windows, encoded, masks, top_k, lists, tokens, passes)

    @property
    def pass_tokens(self) -> int:
        """Estimate of the tokens in all model passes, if the windows have equal numbers of them."""
        return self.tokens * max(1, self.passes // len(self.windows))

    @property
    def word_tokens(self) -> int:
        """Maximum number of tokens of a word."""
        return self.parameters.max_word_tokens or DEFAULT_WORD_TOKENS

    @property
    def fill_tokens(self) -> int:
        """Maximum number of tokens of a fill other than a target."""
        if self.parameters.strategy == "joint":
            return self.masks
        return self.word_tokens if self.parameters.granularity == "word" else 1


# JSON of a fill without its text and tokens, and JSON of a token with its id and two copies of its
# text
_FILL_JSON_BYTES, _TOKEN_JSON_BYTES = 190, 60
# JSON of a token id of a target, and of a rejected target without its text and its error
_ID_JSON_BYTES, _REJECTED_JSON_BYTES = 8, 30
# a fill as an object, with its numbers and the header of its string
_FILL_BYTES = 350
# a queued or running pass, with its queue entry, its arrays and its caller's task
_PASS_BYTES = 6_000
# one target at one mask, with an id, a log-probability and a sum of log-probabilities
_TARGET_SCORE_BYTES = 28
# creating a fill takes about as long as copying this many characters
_FILL_COST_CHARS = 500


@dataclass(frozen=True, slots=True, eq=False)
class PlannedFills:
    """The texts of a request, ready to become passes.

    Attributes:
        plans: plans of the valid texts, by index.
        rejected: errors of the other texts, by index.
        is_large: true if ranking or serializing takes too long for the event loop.
    """

    plans: Mapping[int, FillPlan]
    rejected: Mapping[int, RejectedText]
    is_large: bool

    @property
    def size(self) -> Size:
        return _size(self.plans.values())

    @classmethod
    def collect(cls, texts: Sequence[FillPlan | RejectedText]) -> "PlannedFills":
        plans = {index: one for index, one in enumerate(texts) if isinstance(one, FillPlan)}
        rejected = {index: one for index, one in enumerate(texts) if isinstance(one, RejectedText)}
        return cls(plans, rejected, _is_large(plans.values()))


def _is_large(plans: Iterable[FillPlan]) -> bool:
    ranked = cost_chars = 0
    for plan in plans:
        # each fill repeats its whole text
        cost_chars += plan.lists * plan.top_k * (len(plan.text) + _FILL_COST_CHARS)
        if plan.targets is not None:
            ranked += plan.masks * len(plan.targets)
            cost_chars += plan.lists * plan.targets.rejected_chars
    return is_large(ranked, cost_chars)


def _size(plans: Iterable[FillPlan]) -> Size:
    json_bytes = work_bytes = 0
    for plan in plans:
        text, lists, top_k, targets = plan.text, plan.lists, plan.top_k, plan.targets
        fills = lists * top_k
        # the sizes of targets include their tokens
        tokens = plan.fill_tokens if targets is None else 0
        fill_bytes = len(to_json(text)) + _FILL_JSON_BYTES + tokens * _TOKEN_JSON_BYTES
        json_bytes += fills * fill_bytes
        # Python stores a text with two bytes per character if any character is beyond Latin-1
        text_bytes = max(sys.getsizeof(text), 2 * len(text))
        if targets is not None:
            sizes = _sizes_of(targets)
            json_bytes += lists * (sizes.json_bytes[top_k] + sizes.rejected_json_bytes)
            if sizes.has_non_bmp:
                text_bytes = 4 * len(text)
            work_bytes += _TARGET_SCORE_BYTES * plan.masks * len(targets)
        work_bytes += fills * (text_bytes + _FILL_BYTES) + plan.passes * _PASS_BYTES
    return Size(json_bytes, work_bytes, "Use fewer texts, masks or fills.")


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
            largest_sums(
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
