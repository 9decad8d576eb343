"""The passes that score targets: a mask widened to each target's length, token after token.

Kauf and Ivanova 2023, "A Better Way to Do Masked Language Model Scoring", section 3: a token of a
word is predicted with the word's tokens before it in place, and masks for itself and for those
after it. A target is such a word, though it may be a phrase: by the chain rule the sum over its
tokens is the log-probability of the whole.

Shapes: m masks of a text, K targets.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from service.engine.batch import ModelPass, PassOutputs
from service.tasks.targets import PrefixGroup, Targets
from service.tokenization.tokenizer import EncodedText


class TargetPasses:
    """What to compute for a text, and what is made of the answers.

    Targets of one length that begin alike share a pass; those of one token share one over all the
    masks.

    Args:
        text: with its masks.
        targets: to be scored at each of them.
        mask_token_id: the mask.
    """

    def __init__(self, text: EncodedText, targets: Targets, mask_token_id: int) -> None:
        self._masks = len(text.mask_positions)
        self._targets = targets
        self.requests: list[ModelPass] = []
        self._steps: list[tuple[PrefixGroup, int | slice]] = []
        for step, mask, request in _passes(text, targets.steps, mask_token_id):
            self._steps.append((step, mask))
            self.requests.append(request)

    def log_probs(self, answers: Sequence[PassOutputs]) -> NDArray[np.float64]:
        """(m, K): of each target as a whole, from the answers to `requests` in their order."""
        total_mK = np.zeros((self._masks, len(self._targets)))
        for (step, mask), answer in zip(self._steps, answers, strict=True):
            log_probs = answer.target_log_probs[:, step.columns].astype(np.float64)
            total_mK[mask, step.members] += log_probs if isinstance(mask, slice) else log_probs[0]
        return total_mK


def passes_needed(text: EncodedText, targets: Targets) -> int:
    """How many requests `TargetPasses` makes of a text."""
    widened = sum(step.length > 1 for step in targets.steps)
    return len(text.mask_positions) * widened + len(targets.steps) - widened


def _passes(
    text: EncodedText, steps: Sequence[PrefixGroup], mask_token_id: int
) -> Iterator[tuple[PrefixGroup, int | slice, ModelPass]]:
    for step in steps:
        if step.length == 1:
            # not copied for each mask: of ten thousand targets these would be megabytes
            ids_mC = np.broadcast_to(step.next_ids, (len(text.mask_positions), len(step.next_ids)))
            yield step, slice(None), ModelPass(text.input_ids, text.mask_positions, 1, ids_mC)
            continue
        inserted = [*step.prefix, *[mask_token_id] * (step.length - len(step.prefix))]
        for mask, position in enumerate(text.mask_positions.tolist()):
            ids = text.replace_mask(mask, inserted)
            asked = np.array([position + len(step.prefix)], dtype=np.int64)
            yield step, mask, ModelPass(ids, asked, 1, step.next_ids[None, :])
