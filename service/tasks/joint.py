"""Several masks filled together: bounded beam search.

Filled each alone, "[MASK] [MASK]" may be answered with "New Francisco". Here a mask is filled, the
next one is predicted with that in place, and so on; the sum of the log-probabilities is the joint
one, by the chain rule in the order of filling. As many partial fills are kept as the beam is wide.

Shapes: m masks of a text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.arrays import IntArray
from service.engine.batch import ModelPass, PassOutputs, Submit, no_targets
from service.tasks.options import Order
from service.tasks.results import NO_SINGLE_TOKEN, JointFill
from service.tokenization.tokenizer import EncodedText, Tokenizer

MIN_BEAM = 5


@dataclass(frozen=True, slots=True, eq=False)
class _Partial:
    """Some masks filled.

    Attributes:
        input_ids: (T,) the text with what is filled.
        tokens: (m,) of each mask its token, or -1 while it is open.
        log_prob: of what is filled.
    """

    input_ids: IntArray
    tokens: tuple[int, ...]
    log_prob: float


def beam_width(top_k: int) -> int:
    """Partial fills that are kept."""
    return max(top_k, MIN_BEAM)


def joint_passes(masks: int, top_k: int) -> int:
    """Most passes of the model that a text takes."""
    return 1 + (masks - 1) * beam_width(top_k)


async def fill_jointly(
    text: str,
    encoded: EncodedText,
    tokenizer: Tokenizer,
    submit: Submit,
    *,
    top_k: int,
    order: Order,
) -> list[JointFill]:
    """The best fills of all masks of a text together, best first.

    Args:
        text: as it was written.
        encoded: the same, as the model reads it.
        tokenizer: the model's.
        submit: computes requests.
        top_k: most fills.
        order: the most certain mask first, or from left to right.

    Raises:
        FillMaskError: whatever `submit` raises.
    """
    beam = beam_width(top_k)
    partials = [_Partial(encoded.input_ids, (NO_SINGLE_TOKEN,) * len(encoded.mask_spans), 0.0)]
    for _ in encoded.mask_spans:
        asked = [_open(partial) for partial in partials]
        answers = await submit(
            [
                _request(partial, encoded.mask_positions[masks], beam, tokenizer)
                for partial, masks in zip(partials, asked, strict=True)
            ]
        )
        grown: dict[tuple[int, ...], _Partial] = {}
        for partial, masks, answer in zip(partials, asked, answers, strict=True):
            for one in _grow(partial, masks, answer, encoded, tokenizer, beam, order):
                known = grown.get(one.tokens)
                if known is None or one.log_prob > known.log_prob:
                    grown[one.tokens] = one
        partials = sorted(grown.values(), key=lambda one: -one.log_prob)[:beam]
    return [_shown(text, encoded, tokenizer, one) for one in partials[:top_k]]


def _open(partial: _Partial) -> list[int]:
    return [mask for mask, token in enumerate(partial.tokens) if token == NO_SINGLE_TOKEN]


def _request(partial: _Partial, positions: IntArray, beam: int, tokenizer: Tokenizer) -> ModelPass:
    asked = beam + len(tokenizer.special_token_ids)
    return ModelPass(partial.input_ids, positions, asked, no_targets(len(positions)))


def _grow(
    partial: _Partial,
    masks: Sequence[int],
    answer: PassOutputs,
    encoded: EncodedText,
    tokenizer: Tokenizer,
    beam: int,
    order: Order,
) -> list[_Partial]:
    """One more mask filled, in as many ways as the beam is wide."""
    candidates = [
        [pair for pair in zip(*row, strict=True) if pair[0] not in tokenizer.special_token_ids]
        for row in zip(answer.top_ids.tolist(), answer.top_log_probs.tolist(), strict=True)
    ]
    chosen = 0
    if order == "confidence":
        chosen = max(range(len(masks)), key=lambda place: candidates[place][0][1])
    mask = masks[chosen]
    grown = []
    for token, log_prob in candidates[chosen][:beam]:
        input_ids = partial.input_ids.copy()
        input_ids[encoded.mask_positions[mask]] = token
        tokens = (*partial.tokens[:mask], token, *partial.tokens[mask + 1 :])
        grown.append(_Partial(input_ids, tokens, partial.log_prob + log_prob))
    return grown


def _shown(text: str, encoded: EncodedText, tokenizer: Tokenizer, full: _Partial) -> JointFill:
    sequence = text
    token_strs: list[str] = []
    # from the right, so that what is still to be filled stays where it is
    for span, token in zip(reversed(encoded.mask_spans), reversed(full.tokens), strict=True):
        token_str, sequence = tokenizer.mask_slot(sequence, span).fill(token)
        token_strs.insert(0, token_str)
    alone = len(full.tokens) == 1
    return JointFill(
        score=math.exp(full.log_prob),
        token=full.tokens[0] if alone else NO_SINGLE_TOKEN,
        token_str=token_strs[0] if alone else " ".join(map(str.strip, token_strs)),
        sequence=sequence,
        log_prob=full.log_prob,
        tokens=list(full.tokens),
        token_strs=token_strs,
    )
