"""A tokenizer.json, its special tokens and its size."""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Tokenizer

# names of the special tokens in different families
_NAMES = {
    "cls": ("[CLS]", "<s>", "<cls>"),
    "sep": ("[SEP]", "</s>", "<eos>"),
    "mask": ("[MASK]", "<mask>"),
    "pad": ("[PAD]", "<pad>"),
}


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Ids of a tokenizer's special tokens.

    Attributes:
        cls, sep, mask, pad: ids of the tokens that BERT names [CLS], [SEP], [MASK] and [PAD].
        all: ids of all special tokens in ascending order.
    """

    cls: int
    sep: int
    mask: int
    pad: int
    all: tuple[int, ...]

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> SpecialTokens:
        """Find the special tokens of a tokenizer by their usual names.

        Tokens with the flag `special` take precedence.

        Raises:
            ValueError: the tokenizer lacks a special token.
        """
        added = tokenizer.get_added_tokens_decoder()
        special = {token.content: i for i, token in added.items() if token.special}
        found: dict[str, int] = {}
        lacking: list[str] = []
        for role, names in _NAMES.items():
            marked = [special[name] for name in names if name in special]
            ids = [*marked, *(tokenizer.token_to_id(name) for name in names)]
            if (token_id := next((i for i in ids if i is not None), None)) is None:
                lacking.append(" or ".join(names))
            else:
                found[role] = token_id
        if lacking:
            raise ValueError(
                "the tokenizer must have every special token (missing: "
                f"{', '.join(lacking)}); use another tokenizer"
            )
        return cls(**found, all=tuple(sorted({*special.values(), *found.values()})))


def read_tokenizer(tokenizer_json: bytes) -> Tokenizer:
    """Load a tokenizer with truncation and padding disabled.

    Raises:
        ValueError: the bytes are not a tokenizer.json.
    """
    try:
        tokenizer = Tokenizer.from_str(tokenizer_json.decode())
    except Exception as error:  # noqa: BLE001 - tokenizers raises plain Exception
        raise ValueError(f"tokenizer.json must be a valid tokenizer ({error})") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def separates_pairs(tokenizer: Tokenizer, text: str = "a") -> bool:
    """Return whether the post-processor puts a special token between the texts of a pair.

    Args:
        text: a text that has tokens.
    """
    parts = tokenizer.encode(text, text).sequence_ids
    return {0, 1} <= set(parts) and None in parts[parts.index(0) : parts.index(1)]


def check_vocabulary(tokenizer: Tokenizer, vocab_size: int) -> None:
    """Check that a checkpoint has an embedding for each token.

    Raises:
        ValueError: the tokenizer has more tokens than the checkpoint.
    """
    if (size := tokenizer.get_vocab_size()) > vocab_size:
        raise ValueError(
            f"the tokenizer must have at most {vocab_size} tokens, one for each token embedding of "
            f"the checkpoint (got {size}); use the checkpoint's own tokenizer"
        )
