"""The tokenizer of ESM's protein models, which transformers has only as code in Python."""

from __future__ import annotations

import re
from typing import Any

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

# the white space of Python's str.split, which has more characters than Unicode's white space
_WHITE_SPACE = r"[\s\x1c-\x1f]+"


def build_amino_acids(reference: Any) -> Tokenizer:
    """Build a tokenizer that splits a sequence into the pieces of the vocabulary.

    White space between pieces is optional.

    Args:
        reference: EsmTokenizer of transformers.
    """
    vocabulary, special = reference.get_vocab(), reference.all_special_tokens
    ordinary = sorted(set(vocabulary) - {*special, ""}, key=len, reverse=True)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=reference.unk_token))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WHITE_SPACE), "removed"),
            pre_tokenizers.Split(Regex("|".join(map(re.escape, ordinary))), "isolated"),
        ]
    )
    tokenizer.add_special_tokens(
        [one for one in reference.added_tokens_decoder.values() if one.content in special]
    )
    start = reference.cls_token
    end = [] if reference.eos_token is None else [reference.eos_token]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[start, "$A", *end],
        pair=[start, "$A", *end, "$B", *end],
        special_tokens=[(text, vocabulary[text]) for text in {start, *end}],
    )
    return tokenizer
