"""Fill plans, which are texts with parameters and windows, ready to become passes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fillmask.tasks.fill_mask.joint import max_joint_passes
from fillmask.tasks.fill_mask.parameters import (
    DEFAULT_TOP_K,
    DEFAULT_WORD_TOKENS,
    FillMaskParameters,
)
from fillmask.tasks.fill_mask.target_passes import count_target_passes
from fillmask.tasks.fill_mask.targets import Targets
from fillmask.tasks.fill_mask.words import max_word_passes
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.windows import Window


@dataclass(frozen=True, eq=False)
class FillPlan:
    """A tokenized text with its parameters, and the numbers that follow from them.

    Attributes:
        text: the client's text, or the joined text of a pair.
        targets: the only words and phrases to rank. None means the whole vocabulary.
        windows: one or more parts of the text, which the model reads.
    """

    text: str
    parameters: FillMaskParameters
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
            return min(self.parameters.top_k or len(self.targets), len(self.targets))
        return self.parameters.top_k or DEFAULT_TOP_K

    @cached_property
    def lists(self) -> int:
        """Number of lists of fills. The joint strategy returns one list for all masks."""
        return 1 if self.parameters.strategy == "joint" else self.masks

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
        if self.parameters.strategy == "joint":
            return max_joint_passes(self.masks, self.top_k)
        if self.parameters.granularity == "word":
            return self.masks * max_word_passes(self.word_tokens)
        return 0

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
