"""Fill plans, which are texts with options and windows, ready to become passes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fillmask.tasks.event_loop import is_large
from fillmask.tasks.fill_mask.joint import max_joint_passes
from fillmask.tasks.fill_mask.parameters import DEFAULT_TOP_K, FillOptions
from fillmask.tasks.fill_mask.target_passes import count_target_passes
from fillmask.tasks.fill_mask.targets import Targets
from fillmask.tasks.fill_mask.words import max_word_passes
from fillmask.tasks.rejected import RejectedText
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.windows import Window

# creating a fill takes about as long as copying this many characters
_FILL_COST_CHARS = 500


@dataclass(frozen=True, eq=False)
class FillPlan:
    """A tokenized text with its options, and the numbers that follow from them.

    Attributes:
        text: the client's text, or the joined text of a pair.
        targets: the only words and phrases to rank. None means the whole vocabulary.
        windows: one or more parts of the text, which the model reads.
    """

    text: str
    options: FillOptions
    targets: Targets | None
    windows: Sequence[Window]

    @cached_property
    def encoded(self) -> list[EncodedText]:
        return [window.encoded for window in self.windows]

    @cached_property
    def masks(self) -> int:
        return sum(len(one.mask_spans) for one in self.encoded)

    @cached_property
    def top_k(self) -> int:
        """Maximum number of fills per mask."""
        if self.targets is not None:
            return min(self.options.top_k or len(self.targets), len(self.targets))
        return self.options.top_k or DEFAULT_TOP_K

    @cached_property
    def lists(self) -> int:
        """Number of lists of fills. The joint strategy returns one list for all masks."""
        return 1 if self.options.strategy == "joint" else self.masks

    @cached_property
    def tokens(self) -> int:
        """Number of tokens in all windows."""
        return sum(len(one.input_ids) for one in self.encoded)

    @property
    def pass_tokens(self) -> int:
        """Estimate of the tokens in all model passes, if the windows have equal numbers of them."""
        return self.tokens * max(1, self.passes // len(self.windows))

    @cached_property
    def passes(self) -> int:
        """Maximum number of model passes. The pass of a plain fill does not count."""
        if self.targets is not None:
            return sum(count_target_passes(text, self.targets) for text in self.encoded)
        if self.options.strategy == "joint":
            return max_joint_passes(self.masks, self.top_k)
        if self.options.granularity == "word":
            return self.masks * max_word_passes(self.options.max_word_tokens)
        return 0


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
