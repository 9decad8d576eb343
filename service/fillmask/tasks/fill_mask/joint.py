"""Joint filling of several masks by bounded beam search.

Independent filling may give "[MASK] [MASK]" the tokens "New Francisco". The beam search predicts
each mask with the earlier tokens in place. By the chain rule, the sum of the tokens'
log-probabilities is the joint log-probability. The beam width is the number of hypotheses that the
search keeps.

Shapes: T tokens and m masks of a text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fillmask.arrays import IntArray
from fillmask.engine.passes import ModelPass, PassOutputs, Submit, no_targets
from fillmask.tasks.fill_mask.parameters import Order
from fillmask.tasks.fill_mask.results import NO_SINGLE_TOKEN, JointFill
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer

MIN_BEAM_WIDTH = 5


@dataclass(frozen=True, slots=True, eq=False)
class _Hypothesis:
    """A text with some of its masks filled.

    Attributes:
        input_ids: (T,) ids of the text with the chosen tokens in place.
        tokens: (m,) chosen token of each mask, or -1 for a mask that is not filled yet.
        log_prob: joint log-probability of the chosen tokens, in nats.
    """

    input_ids: IntArray
    tokens: tuple[int, ...]
    log_prob: float


def beam_width(top_k: int) -> int:
    """Return the number of hypotheses that the beam search keeps."""
    return max(top_k, MIN_BEAM_WIDTH)


def max_joint_passes(masks: int, top_k: int) -> int:
    return 1 + (masks - 1) * beam_width(top_k)


async def fill_jointly(
    text: str,
    encoded: EncodedText,
    tokenizer: Tokenizer,
    submit: Submit,
    *,
    vocab_size: int,
    top_k: int,
    order: Order,
) -> list[JointFill]:
    """Return at most `top_k` joint fills of all masks of a text, best first.

    Args:
        vocab_size: number of rows of the model's embedding table.

    Raises:
        FillMaskError: `submit` rejects the passes.
    """
    width = beam_width(top_k)
    ranked = min(width + len(tokenizer.special_token_ids), vocab_size)
    beam = [_Hypothesis(encoded.input_ids, (NO_SINGLE_TOKEN,) * len(encoded.mask_spans), 0.0)]
    for _ in encoded.mask_spans:
        open_masks = [_open_masks(hypothesis) for hypothesis in beam]
        passes = [
            ModelPass(
                hypothesis.input_ids,
                encoded.mask_positions[masks],
                ranked,
                no_targets(len(masks)),
                encoded.token_types,
            )
            for hypothesis, masks in zip(beam, open_masks, strict=True)
        ]
        outputs = await submit(passes)
        # no two are the same, because the fills of one mask of one hypothesis have distinct tokens
        expanded = [
            one
            for hypothesis, masks, output in zip(beam, open_masks, outputs, strict=True)
            for one in _expand(hypothesis, masks, output, encoded, tokenizer, width, order)
        ]
        beam = sorted(expanded, key=lambda one: -one.log_prob)[:width]
    return [_to_fill(text, encoded, tokenizer, one) for one in beam[:top_k]]


def _open_masks(hypothesis: _Hypothesis) -> list[int]:
    return [mask for mask, token in enumerate(hypothesis.tokens) if token == NO_SINGLE_TOKEN]


def _expand(
    hypothesis: _Hypothesis,
    masks: Sequence[int],
    output: PassOutputs,
    encoded: EncodedText,
    tokenizer: Tokenizer,
    width: int,
    order: Order,
) -> list[_Hypothesis]:
    """Fill one more mask with each of the `width` best tokens."""
    candidates = [
        [pair for pair in zip(*row, strict=True) if pair[0] not in tokenizer.special_token_ids]
        for row in zip(output.top_ids.tolist(), output.top_log_probs.tolist(), strict=True)
    ]
    chosen = 0
    if order == "confidence":
        chosen = max(range(len(masks)), key=lambda place: candidates[place][0][1])
    mask = masks[chosen]
    expanded = []
    for token, log_prob in candidates[chosen][:width]:
        input_ids = hypothesis.input_ids.copy()
        input_ids[encoded.mask_positions[mask]] = token
        tokens = (*hypothesis.tokens[:mask], token, *hypothesis.tokens[mask + 1 :])
        expanded.append(_Hypothesis(input_ids, tokens, hypothesis.log_prob + log_prob))
    return expanded


def _to_fill(
    text: str, encoded: EncodedText, tokenizer: Tokenizer, hypothesis: _Hypothesis
) -> JointFill:
    sequence = text
    token_strs: list[str] = []
    # from the right, so that the spans of the masks to the left stay valid
    for mask, token in reversed(list(enumerate(hypothesis.tokens))):
        token_str, sequence = tokenizer.mask_slot(sequence, encoded, mask).fill(token)
        token_strs.insert(0, token_str)
    single = len(hypothesis.tokens) == 1
    return JointFill(
        score=math.exp(hypothesis.log_prob),
        token=hypothesis.tokens[0] if single else NO_SINGLE_TOKEN,
        token_str=token_strs[0] if single else " ".join(map(str.strip, token_strs)),
        sequence=sequence,
        log_prob=hypothesis.log_prob,
        tokens=hypothesis.tokens,
        token_strs=tuple(token_strs),
    )
