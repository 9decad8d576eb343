"""A text to fill, read: what the model sees of it, and what is asked of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.errors import InvalidRequestError
from service.tasks.joint import joint_passes
from service.tasks.options import DEFAULT_TOP_K, FillOptions
from service.tasks.target_passes import passes_needed
from service.tasks.targets import Targets
from service.tasks.words import word_passes
from service.tokenization.byte_cache import ByteCache
from service.tokenization.reader import TextReader
from service.tokenization.tokenizer import EncodedText, Tokenizer
from service.tokenization.windows import Window

# a list of 10,000 words takes some 2 MB
CACHED_TARGETS_BYTES = 2**23


@dataclass(frozen=True, slots=True, eq=False)
class FillPlan:
    """A text to fill.

    Attributes:
        text: as it was written.
        options: how it is to be filled.
        targets: the only words to rank, where asked for.
        windows: what the model sees of it, at least one.
    """

    text: str
    options: FillOptions
    targets: Targets | None
    windows: Sequence[Window]

    @property
    def encoded(self) -> list[EncodedText]:
        """The windows as the model reads them."""
        return [window.encoded for window in self.windows]

    @property
    def masks(self) -> int:
        """Masks of the text."""
        return sum(len(window.encoded.mask_spans) for window in self.windows)

    @property
    def wanted(self) -> int:
        """Most fills of a mask."""
        if self.targets is not None:
            return min(self.options.top_k or len(self.targets), len(self.targets))
        return self.options.top_k or DEFAULT_TOP_K

    @property
    def passes(self) -> int:
        """Most passes of the model that it takes; 0 where that is the one of a plain fill."""
        if self.targets is not None:
            return sum(passes_needed(text, self.targets) for text in self.encoded)
        if self.options.strategy == "joint":
            return joint_passes(self.masks, self.wanted)
        if self.options.granularity == "word":
            return self.masks * word_passes(self.options.max_word_tokens)
        return 0


class FillPlanner:
    """Reads texts to fill.

    Args:
        tokenizer: the model's.
        max_tokens: longest text the model reads, special tokens included.
        max_passes: most passes of the model for one request.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int, max_passes: int) -> None:
        self._texts = TextReader(tokenizer, max_tokens)
        self._tokenizer = tokenizer
        self._max_passes = max_passes
        # those who rank a list of words rank it in many texts
        self._cached: ByteCache[tuple[str, ...], Targets] = ByteCache(CACHED_TARGETS_BYTES)

    def check_targets(self, options: FillOptions) -> None:
        """Refuse targets that no text can be filled with.

        Raises:
            InvalidRequestError: one of them cannot be used.
        """
        if options.targets:
            self._resolve(options.targets).check()

    def read(self, text: str, options: FillOptions, where: str, *, report: bool) -> FillPlan:
        """Read one text.

        Args:
            text: with at least one mask.
            options: how it is to be filled.
            where: what the caller calls it.
            report: go on without the targets that cannot be used, if there are others.

        Raises:
            InvalidRequestError: it has no mask or is too long, or a target cannot be used.
        """
        targets = self._resolve(options.targets) if options.targets else None
        if targets is not None and targets.refused and not (report and targets.texts):
            targets.check()
        longest = 1 if targets is None else targets.longest
        if options.granularity == "word":
            longest = options.max_word_tokens
        if options.on_long_text == "window":
            windows = self._texts.read_windows(text, where, longest - 1)
            if options.strategy == "joint" and len(windows) > 1:
                raise InvalidRequestError(
                    f"{where} has masks that are further apart than the model reads; they cannot "
                    "be filled together."
                )
            return FillPlan(text, options, targets, windows)
        encoded = self._texts.read_masked(text, where)
        if longest > 1:
            tokens = len(encoded.input_ids) - 1 + longest
            self._texts.check_tokens(tokens, where, f" with {longest} in place of a mask")
        return FillPlan(text, options, targets, [Window(encoded)])

    def _resolve(self, texts: tuple[str, ...]) -> Targets:
        targets = self._cached.get(texts)
        if targets is None:
            targets = Targets.resolve(self._tokenizer, texts, self._max_passes)
            self._cached.put(texts, targets, targets.size_bytes)
        return targets
