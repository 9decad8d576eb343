"""Model passes that score targets of one or more tokens.

In the input of a pass, the mask becomes as many masks as the target has tokens. The model predicts
each token with the target's earlier tokens in place and masks for the other tokens (Kauf and
Ivanova 2023, "A Better Way to Do Masked Language Model Scoring", section 3). By the chain rule, the
sum of the tokens' log-probabilities is the log-probability of the whole target.

Shapes: m masks of a text, K targets.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fillmask.arrays import IntArray
from fillmask.engine.passes import ModelPass, PassOutputs
from fillmask.tasks.fill_mask.targets import PrefixGroup, Targets
from fillmask.tokenization.encoded_text import EncodedText


class TargetPasses:
    """Model passes for the targets of one text.

    Targets of equal length with a common prefix share a pass. Targets of one token share a single
    pass for all masks.

    Args:
        text: a text with at least one mask.
        glued: whether each mask has no space before it.

    Attributes:
        model_passes: the passes to compute, in the order that `log_probs` expects.
    """

    def __init__(
        self, text: EncodedText, targets: Targets, mask_token_id: int, glued: Sequence[bool]
    ) -> None:
        self._shape = len(text.mask_positions), len(targets)
        self.model_passes: list[ModelPass] = []
        self._groups: list[tuple[PrefixGroup, list[int]]] = []
        for form in sorted(set(glued)):
            masks = [mask for mask, one in enumerate(glued) if one == form]
            groups = targets.tokens(glued=form).groups
            for group, own_masks, model_pass in _make_passes(text, groups, masks, mask_token_id):
                self._groups.append((group, own_masks))
                self.model_passes.append(model_pass)

    def log_probs(self, outputs: Sequence[PassOutputs]) -> NDArray[np.float64]:
        """Return the (m, K) log-probabilities of whole targets, in nats, from all outputs."""
        total_mK = np.zeros(self._shape)
        for (group, masks), output in zip(self._groups, outputs, strict=True):
            log_probs = output.target_log_probs[:, group.columns].astype(np.float64)
            total_mK[np.ix_(np.array(masks), group.members)] += log_probs
        return total_mK


def count_target_passes(text: EncodedText, targets: Targets) -> int:
    """Return the maximum number of passes that `TargetPasses` makes for a text."""
    long_groups = max(one.long_groups for one in targets.forms)
    return len(text.mask_positions) * long_groups + sum(
        len(one.groups) - one.long_groups for one in targets.forms
    )


def _make_passes(
    text: EncodedText, groups: Sequence[PrefixGroup], masks: list[int], mask_token_id: int
) -> Iterator[tuple[PrefixGroup, list[int], ModelPass]]:
    for group in groups:
        if group.length == 1:
            # a view, because copies of ten thousand targets for each mask take megabytes
            ids_mC = np.broadcast_to(group.next_ids, (len(masks), len(group.next_ids)))
            yield group, masks, _pass(text, text.mask_positions[masks], ids_mC)
            continue
        inserted = [*group.prefix, *[mask_token_id] * (group.length - len(group.prefix))]
        for mask in masks:
            position = int(text.mask_positions[mask])
            predicted = np.array([position + len(group.prefix)], dtype=np.int64)
            one = _pass(text.replace_mask(mask, inserted), predicted, group.next_ids[None, :])
            yield group, [mask], one


def _pass(text: EncodedText, positions: IntArray, target_ids: IntArray) -> ModelPass:
    return ModelPass(text.input_ids, positions, 1, target_ids, text.token_types)
