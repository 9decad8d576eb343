"""Texts of the verification as a model reads them, and random tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from fillmask.arrays import IntArray
from fillmask.bundles.bundle import Bundle
from fillmask.bundles.description import Pooling
from fillmask.parameters.texts import InputText, TextPair
from fillmask.tokenization.encoded_text import EncodedText
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.heads.errors import VerificationError

RANDOM_TEXTS = 12  # maximum number
# Maximum number of golden inputs of a task. 16 prompts have enough masks for the mean difference to
# distinguish saturating int8 kernels from the rounding of another CPU.
GOLDEN_TEXTS = 16
PAIR_INTERVAL = 4  # a quarter of the golden inputs of a model that reads pairs are pairs
PLACES = (1 / 4, 1 / 2, 3 / 4)  # relative positions of the masks in a golden prompt
LEAST_WORDS = 7  # shorter texts have one mask in the middle


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Texts of the verification, and what a bundle says of its inputs.

    Inputs of more than `max_tokens` tokens are left out.

    Attributes:
        texts: plain sentences without masks.
        token_types: number of token types of random tokens. 1 if all tokens have type 0.
        vocab_size: number of rows of the embedding table.
        int8: whether the bundle is in int8.
        pooling: tokens that the classification head reads, in a bundle with labels.
    """

    texts: Sequence[str]
    tokenizer: Tokenizer
    max_tokens: int
    token_types: int
    vocab_size: int
    int8: bool
    pooling: Pooling = "first"

    @classmethod
    def of_bundle(cls, bundle: Bundle, texts: Sequence[str]) -> Samples:
        return cls(
            texts=texts,
            tokenizer=Tokenizer.from_bundle(bundle),
            max_tokens=bundle.max_tokens,
            token_types=bundle.token_types,
            vocab_size=bundle.architecture.vocab_size,
            int8=bundle.precision == "int8",
            pooling="first" if bundle.classification is None else bundle.classification.pooling,
        )

    def encode(self, most: int | None = None) -> list[EncodedText]:
        """Tokenize the first texts and, if the model reads pairs, pairs of neighbouring texts.

        Each text is in at most one pair.

        Args:
            most: maximum number of texts, too long ones included. None for all.
        """
        texts = self.texts[:most]
        inputs: list[InputText] = list(texts)
        if self.tokenizer.reads_pairs:
            inputs += map(TextPair, texts[::2], texts[1::2])
        encoded = map(self.tokenizer.encode, inputs)
        return [one for one in encoded if len(one.input_ids) <= self.max_tokens]

    def random(self, generator: np.random.Generator) -> list[tuple[IntArray, IntArray | None]]:
        """Return random token ids and types of up to RANDOM_TEXTS lengths, from 3 to `max_tokens`.

        With one token type, the types are None.
        """
        shortest = min(3, self.max_tokens)
        lengths = np.unique(np.geomspace(shortest, self.max_tokens, RANDOM_TEXTS).astype(int))
        ids = [generator.integers(0, self.vocab_size, length) for length in lengths]
        if self.token_types == 1:
            return [(one, None) for one in ids]
        return [(one, generator.integers(0, self.token_types, len(one))) for one in ids]

    def golden(self, *, masked: bool) -> list[tuple[InputText, EncodedText]]:
        """Return the inputs of golden results, with their tokens.

        Args:
            masked: whether to mask some words of each text, for golden prompts.

        Raises:
            VerificationError: no text has at most `max_tokens` tokens.
        """
        found: list[tuple[InputText, EncodedText]] = []
        for index, text in enumerate(self.texts):
            one = _mask_words(text, self.tokenizer.mask_token) if masked else text
            options: list[InputText] = [one]
            pairs = self.tokenizer.reads_pairs and index % PAIR_INTERVAL == 1
            if pairs and index + 1 < len(self.texts):
                options = [TextPair(one, self.texts[index + 1]), one]
            encoded = [(option, self.tokenizer.encode(option)) for option in options]
            found += [one for one in encoded if len(one[1].input_ids) <= self.max_tokens][:1]
            if len(found) == GOLDEN_TEXTS:
                break
        if not found:
            raise self.all_too_long()
        return found

    def all_too_long(self) -> VerificationError:
        return VerificationError(
            f"all verification texts have more than {self.max_tokens} tokens; "
            "give shorter texts with --texts"
        )


def text_fields(text: InputText) -> dict[str, str]:
    """Return a text or a pair as fields of a golden result."""
    return {"text": text} if isinstance(text, str) else asdict(text)


def _mask_words(text: str, mask_token: str) -> str:
    words = text.split()
    for place in PLACES if len(words) >= LEAST_WORDS else (1 / 2,):
        words[int(place * len(words))] = mask_token
    return " ".join(words)
