"""Fill plans, which are texts with options and windows, ready to become passes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fillmask.errors import InvalidRequestError
from fillmask.parameters.fill_mask import DEFAULT_TOP_K, FillOptions
from fillmask.parameters.texts import InputText
from fillmask.results.rejected import RejectedText
from fillmask.tasks.event_loop import is_large
from fillmask.tasks.fill_mask.joint import max_joint_passes
from fillmask.tasks.fill_mask.target_passes import count_target_passes
from fillmask.tasks.fill_mask.targets import Targets
from fillmask.tasks.fill_mask.words import max_word_passes
from fillmask.tokenization.byte_cache import ByteCache
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.reader import TextReader
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask.tokenization.windows import Window

# four lists of 10,000 words, which take about 2 MB each
CACHED_TARGETS_BYTES = 2**23
# creating a fill takes about as long as copying this many characters
_FILL_COST_CHARS = 500


@dataclass(frozen=True, slots=True, eq=False)
class FillPlan:
    """A tokenized text with its options.

    Attributes:
        text: the client's text, or the joined text of a pair.
        targets: the only words and phrases to rank. None means the whole vocabulary.
        windows: one or more parts of the text, which the model reads.
    """

    text: str
    options: FillOptions
    targets: Targets | None
    windows: Sequence[Window]

    @property
    def encoded(self) -> list[EncodedText]:
        """Encoded text of each window."""
        return [window.encoded for window in self.windows]

    @property
    def masks(self) -> int:
        """Number of masks of the text."""
        return sum(len(window.encoded.mask_spans) for window in self.windows)

    @property
    def top_k(self) -> int:
        """Maximum number of fills per mask."""
        if self.targets is not None:
            return min(self.options.top_k or len(self.targets), len(self.targets))
        return self.options.top_k or DEFAULT_TOP_K

    @property
    def lists(self) -> int:
        """Number of lists of fills. The joint strategy returns one list for all masks."""
        return 1 if self.options.strategy == "joint" else self.masks

    @property
    def tokens(self) -> int:
        """Number of tokens in all windows."""
        return sum(len(window.encoded.input_ids) for window in self.windows)

    @property
    def pass_tokens(self) -> int:
        """Estimate of the tokens in all model passes, if the windows have equal numbers of them."""
        return self.tokens * max(1, self.passes // len(self.windows))

    @property
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
        """Collect the plan or the error of each text."""
        plans = {index: one for index, one in enumerate(texts) if isinstance(one, FillPlan)}
        rejected = {index: one for index, one in enumerate(texts) if isinstance(one, RejectedText)}
        return cls(plans, rejected, _is_large(plans.values()))


class FillPlanner:
    """Planner that turns texts and options into plans.

    Args:
        max_tokens: maximum length of a text in tokens, including special tokens.
        max_passes: maximum number of model passes per request.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, max_passes: int) -> None:
        self._texts = TextReader(tokenizer, max_tokens)
        self._tokenizer = tokenizer
        self._max_passes = max_passes
        # clients often rank the same list of words in many texts
        self._cached: ByteCache[tuple[str, ...], Targets] = ByteCache(CACHED_TARGETS_BYTES)

    def check_targets(self, options: FillOptions) -> None:
        """Reject targets that are invalid for every text.

        Raises:
            InvalidRequestError: a target is invalid.
        """
        if options.targets:
            self._resolve(options.targets).check()

    def plan(
        self, text: InputText, options: FillOptions, label: str, *, report_errors: bool
    ) -> FillPlan:
        """Make the plan of one text.

        Args:
            text: a text or a pair with at least one mask.
            label: the client's name for the text, for error messages.
            report_errors: True to ignore invalid targets if at least one target is valid.

        Raises:
            InvalidRequestError: the text has no mask, the text is too long, its masks are too far
                apart for joint filling or a target is invalid.
        """
        targets = self._resolve(options.targets) if options.targets else None
        if targets is not None and targets.rejected and not (report_errors and targets.texts):
            targets.check()
        longest = 1 if targets is None else targets.longest
        if options.granularity == "word":
            longest = options.max_word_tokens
        if options.on_long_text == "window":
            windows = self._texts.read_windows(text, label, longest - 1)
            if options.strategy == "joint" and len(windows) > 1:
                raise InvalidRequestError(
                    f"{label} has masks too far apart for joint filling; use a shorter text or "
                    'strategy "independent".'
                )
            return FillPlan(str(text), options, targets, windows)
        encoded = self._texts.read_masked(text, label)
        if longest > 1:
            tokens = len(encoded.input_ids) - 1 + longest
            self._texts.check_tokens(tokens, label, cause=f" with {longest} in place of a mask")
        return FillPlan(str(text), options, targets, [Window(encoded)])

    def _resolve(self, texts: tuple[str, ...]) -> Targets:
        targets = self._cached.get(texts)
        if targets is None:
            targets = Targets.resolve(self._tokenizer, texts, self._max_passes)
            self._cached.put(texts, targets, targets.size_bytes)
        return targets


def _is_large(plans: Iterable[FillPlan]) -> bool:
    """Return whether ranking or serializing the fills takes too long for the event loop."""
    ranked = cost_chars = 0
    for plan in plans:
        # each fill repeats its whole text
        cost_chars += plan.lists * plan.top_k * (len(plan.text) + _FILL_COST_CHARS)
        if plan.targets is not None:
            ranked += plan.masks * len(plan.targets)
            cost_chars += plan.lists * plan.targets.rejected_chars
    return is_large(ranked, cost_chars)
