"""Special tokens and token types of pairs, compared with the tokenizer's encoding."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, processors
from tokenizers.processors import PostProcessor

from fillmask_model.pretraining.pair_template import PairTemplate
from tests.model.samples import verse_tokenizer

FIRST, SECOND = "the old fox ran", "over the green hill to the sea"


def with_processor(processor: PostProcessor | None) -> Tokenizer:
    """Return a tokenizer with another post-processor."""
    tokenizer = verse_tokenizer()
    tokenizer.post_processor = processor
    return tokenizer


def ids_of(tokenizer: Tokenizer, text: str) -> np.ndarray:
    """Return the ids of a text without special tokens."""
    return np.array(tokenizer.encode(text, add_special_tokens=False).ids)


TEMPLATES = {
    "bert": (None, 3, 2),
    "roberta": (processors.RobertaProcessing(("[SEP]", 3), ("[CLS]", 2)), 4, 1),
    "no token at the end": (
        processors.TemplateProcessing(
            single="[CLS] $A",
            pair="[CLS] $A [SEP] $B:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        ),
        2,
        2,
    ),
}


@pytest.mark.parametrize(("processor", "special", "types"), TEMPLATES.values(), ids=TEMPLATES)
def test_an_input_is_the_tokenizers_own(
    processor: PostProcessor | None, special: int, types: int
) -> None:
    tokenizer = verse_tokenizer()
    if processor is not None:
        tokenizer.post_processor = processor
    template = PairTemplate.from_tokenizer(tokenizer)
    expected = tokenizer.encode(FIRST, SECOND)
    ids, token_types = template.input_of(ids_of(tokenizer, FIRST), ids_of(tokenizer, SECOND))
    assert ids.tolist() == expected.ids
    assert token_types.tolist() == expected.type_ids
    assert (template.special_count, template.token_types) == (special, types)


def test_berts_types_are_0_and_1() -> None:
    # Type 1 begins with the second segment and includes the last separator.
    tokenizer = verse_tokenizer()
    template = PairTemplate.from_tokenizer(tokenizer)
    _, types = template.input_of(np.array([9, 9, 9]), np.array([8, 8]))
    assert types.tolist() == [0] * 5 + [1] * 3


@pytest.mark.parametrize(
    "processor",
    [
        processors.TemplateProcessing(single="$A", pair="$A $B:1", special_tokens=[]),
        processors.TemplateProcessing(
            single="$A [SEP]", pair="$A [SEP] $B:1 [SEP]:1", special_tokens=[("[SEP]", 3)]
        ),
        processors.TemplateProcessing(
            single="[CLS] $A", pair="[CLS] $A $B:1", special_tokens=[("[CLS]", 2)]
        ),
    ],
)
def test_a_tokenizer_without_separators_is_refused(processor: PostProcessor | None) -> None:
    with pytest.raises(ValueError, match="must have a template for pairs"):
        PairTemplate.from_tokenizer(with_processor(processor))
