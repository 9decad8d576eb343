"""Format of a model's inputs, which the tokenizer and the encoder of a checkpoint determine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from fillmask_model.encoder.config import EncoderConfig
from fillmask_model.tokenizers.special_tokens import read_tokenizer


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Kinds of inputs that a model reads.

    Attributes:
        pairs: whether the model reads pairs of texts.
        token_types: number of token types in pairs. 1 if all tokens have type 0.
    """

    pairs: bool
    token_types: int

    @classmethod
    def from_tokenizer(cls, tokenizer_json: bytes, mask_token: str, config: EncoderConfig) -> Self:
        """Find the format from the tokens of a pair.

        A model reads pairs if its tokenizer separates the two texts by special tokens. The model
        needs token types if the tokenizer gives the second text a type above 0 and the encoder has
        an embedding for this type.

        Args:
            tokenizer_json: content of the checkpoint's tokenizer.json.
        """
        # the mask token is the only text that is one token with every vocabulary
        pair = read_tokenizer(tokenizer_json).encode(mask_token, mask_token)
        parts = pair.sequence_ids
        if 0 not in parts or 1 not in parts or None not in parts[parts.index(0) : parts.index(1)]:
            return cls(pairs=False, token_types=1)
        has_types = 0 < max(pair.type_ids) < config.type_vocab_size
        return cls(pairs=True, token_types=config.type_vocab_size if has_types else 1)
