"""Score plans, which are texts with the tokens to score, ready to become passes.

Shapes: T tokens of a text or a pair, t tokens that are not special, s scored tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fillmask.arrays import IntArray
from fillmask.engine.passes import ModelPass
from fillmask.errors import InvalidRequestError, quote
from fillmask.parameters.texts import InputText
from fillmask.tasks.pipeline import Size
from fillmask.tasks.result import RejectedText
from fillmask.tasks.score.parameters import ScoreParameters, Variant
from fillmask.tokenization.encoded_text import EncodedWords

# writing this many scores takes 0.3 ms
LARGE_SCORES = 1_000
# one pass, with its queue entry, its arrays, and its score as an object and as JSON
_PASS_BYTES = 3_000
# a target of a pass with its id and its log-probability, also as an object, and its JSON
_TARGET_BYTES, _TARGET_JSON_BYTES = 68, 26


@dataclass(frozen=True, slots=True, eq=False)
class ScorePlan:
    """A tokenized text with the tokens to score.

    Attributes:
        text: the client's text or pair.
        scored: (s,) int64, ascending indices of the scored tokens among the t ordinary tokens.
        targets: (K,) int64, ids of the tokens to look up in place of each scored token.
    """

    text: InputText
    words: EncodedWords
    variant: Variant
    scored: IntArray
    targets: IntArray

    @property
    def tokens(self) -> IntArray:
        """Ids (s,) of the scored tokens."""
        return self.words.input_ids[self.words.positions[self.scored]]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Start and end of each scored token in the text, in characters."""
        return [self.words.spans[index] for index in self.scored.tolist()]

    @property
    def parts(self) -> IntArray:
        """Part (s,) of the pair that contains each scored token, 0 or 1."""
        return self.words.parts[self.scored]

    def passes(self, mask_token_id: int) -> Iterator[ModelPass]:
        """Yield one pass per scored token, with a mask in place of the token.

        Its targets are the token itself and then those of the plan.

        The variant within_word also masks the later tokens of the same word, even if these tokens
        are not scored. Therefore the score of a token does not depend on the other scored tokens.
        """
        words = self.words
        one = np.zeros(1, dtype=np.int64)
        for index in self.scored.tolist():
            position = int(words.positions[index])
            rest = words.words[index:] == words.words[index]
            within_word = self.variant == "within_word"
            masked = words.positions[index:][rest] if within_word else one + position
            input_ids = words.input_ids.copy()
            input_ids[masked] = mask_token_id
            targets = np.append(words.input_ids[position], self.targets)
            yield ModelPass(input_ids, one + position, 1, targets[None, :], words.token_types)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedScores:
    """The texts of a request, ready to become passes."""

    texts: Sequence[ScorePlan | RejectedText]

    @property
    def passes(self) -> int:
        return sum(len(plan.scored) for plan in self.plans)

    @property
    def is_large(self) -> bool:
        values = sum(len(plan.scored) * (1 + len(plan.targets)) for plan in self.plans)
        return values > LARGE_SCORES

    @property
    def size(self) -> Size:
        # each pass copies the ids of its text and of the targets
        targets = sum(len(plan.scored) * len(plan.targets) for plan in self.plans)
        passes = (
            len(plan.scored) * (_PASS_BYTES + plan.words.input_ids.nbytes) for plan in self.plans
        )
        return Size(
            _TARGET_JSON_BYTES * targets,
            _TARGET_BYTES * targets + sum(passes),
            "Use fewer texts or targets.",
        )

    @property
    def plans(self) -> list[ScorePlan]:
        return [one for one in self.texts if isinstance(one, ScorePlan)]


def plan_scores(
    text: InputText, words: EncodedWords, chosen: ScoreParameters, targets: IntArray, label: str
) -> ScorePlan:
    """Make the plan of one text or pair.

    Args:
        targets: (K,) int64, ids of the targets.
        label: the client's name for the text, for error messages.

    Raises:
        InvalidRequestError: the options do not fit the text. They name a part that the text does
            not have, select characters outside the text, cut a token, or select no token.
    """
    scored = _scored_tokens(text, words, chosen, label)
    return ScorePlan(text, words, chosen.chosen_variant, scored, targets)


def _scored_tokens(
    text: InputText, words: EncodedWords, chosen: ScoreParameters, label: str
) -> IntArray:
    if isinstance(text, str):
        if chosen.part == "text_pair":
            raise InvalidRequestError(f"{label} has no text_pair; remove part or add text_pair.")
        own, offset = text, 0
    elif chosen.part is None:
        if chosen.span is not None or chosen.prefix is not None:
            name = _name(chosen)
            raise InvalidRequestError(
                f"{label} is a pair; with {name}, set part to text or text_pair."
            )
        return np.arange(len(words.positions))
    elif chosen.part == "text":
        own, offset, label = text.text, 0, f"{label}.text"
    else:
        own, offset, label = text.text_pair, text.second_start, f"{label}.text_pair"
    start, end = _span(own, chosen, label)
    tokens = np.flatnonzero(words.parts == int(chosen.part == "text_pair"))
    starts, ends = np.array(words.spans, dtype=np.int64)[tokens].T - offset
    # a token without characters, such as the first of two spaces, belongs to the characters before
    inside = (start <= starts) & (ends <= end) & ((start < ends) | (start == 0))
    cut = (starts < end) & (start < ends) & ~inside
    if cut.any():
        first = int(np.argmax(cut))
        token_start, token_end = int(starts[first]), int(ends[first])
        raise InvalidRequestError(
            f"{_name(chosen)} cuts the token {quote(own[token_start:token_end])} of {label}, "
            f"which starts at character {token_start} and ends at {token_end}; include the whole "
            "token or leave it out."
        )
    if not inside.any():
        raise _no_token_error(chosen, label)
    scored: IntArray = tokens[inside]
    return scored


def _span(text: str, chosen: ScoreParameters, label: str) -> tuple[int, int]:
    """Return the start and the end of the characters to score."""
    if chosen.span is not None:
        if chosen.span[1] > len(text):
            raise InvalidRequestError(
                f"span must end at {len(text)} or before, because {label} has {len(text)} "
                f"characters (got {list(chosen.span)})."
            )
        start, end = chosen.span
        return start, end
    prefix = chosen.prefix or ""
    if not text.startswith(prefix):
        raise InvalidRequestError(
            f"{label} must start with prefix {quote(prefix)}; change one of them."
        )
    return len(prefix), len(text)


def _no_token_error(chosen: ScoreParameters, label: str) -> InvalidRequestError:
    if chosen.span is not None:
        return InvalidRequestError(f"span selects no token of {label}; include at least one word.")
    if chosen.prefix:
        return InvalidRequestError(f"{label} has no tokens after prefix; shorten prefix.")
    return InvalidRequestError(f"{label} has no tokens; write at least one word.")


def _name(chosen: ScoreParameters) -> str:
    return "prefix" if chosen.span is None else "span"
