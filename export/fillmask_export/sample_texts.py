"""Texts for the verification and the calibration of a model, which it must be able to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fillmask.tokenization.tokenizer import Tokenizer

_HERE = Path(__file__).parent
TEXTS = _HERE / "texts"
# Real text has unknown tokens, such as emoji. More than this share changes what is verified.
MAX_UNKNOWN = 0.1
GIVEN = "the given texts"
_K_MERS = (6, 5, 4, 3)


@dataclass(frozen=True, slots=True)
class SampleTexts:
    """Real sentences that resemble the model's training text.

    The two lists must not share sentences.

    Attributes:
        verification: sentences for the comparison with PyTorch, golden prompts and golden texts.
        calibration: sentences for rounding to int8. The export does not use these sentences if
            training has rounded the weights.
        name: where they come from.
    """

    verification: Sequence[str]
    calibration: Sequence[str]
    name: str = GIVEN


@dataclass(frozen=True, slots=True)
class GivenTexts:
    """Sentences that the user names. None stands for texts that the model can read."""

    verification: Sequence[str] | None = None
    calibration: Sequence[str] | None = None

    def complete(self, tokenizer: Tokenizer) -> SampleTexts:
        """Return these texts, with others in place of those that are missing."""
        if self.verification is not None and self.calibration is not None:
            return SampleTexts(self.verification, self.calibration)
        others = choose_texts(tokenizer)
        return SampleTexts(
            others.verification if self.verification is None else self.verification,
            others.calibration if self.calibration is None else self.calibration,
            others.name if self.verification is None else GIVEN,
        )


def choose_texts(tokenizer: Tokenizer) -> SampleTexts:
    """Return English texts or, for a tokenizer that can't read them, those that it reads best."""
    english = SampleTexts(
        read_lines(_HERE / "verification_texts.txt"),
        read_lines(_HERE / "calibration_texts.txt"),
        "English texts",
    )
    if unknown_share(tokenizer, english.verification) <= MAX_UNKNOWN:
        return english
    others = [SampleTexts(texts[::2], texts[1::2], name) for name, texts in _domains()]
    best = min(others, key=lambda one: unknown_share(tokenizer, one.verification))
    known = unknown_share(tokenizer, best.verification) <= MAX_UNKNOWN
    return best if known else english


def unknown_share(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """Return the share of unknown tokens in texts, special tokens not counted."""
    encoded = [tokenizer.encode_words(text) for text in texts]
    ids = np.concatenate([one.input_ids[one.positions] for one in encoded])
    return tokenizer.count_unknown(ids) / max(1, len(ids))


def read_lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _domains() -> Iterator[tuple[str, list[str]]]:
    proteins, dna = read_lines(TEXTS / "proteins.txt"), read_lines(TEXTS / "dna.txt")
    yield "proteins", proteins
    yield "proteins with spaces between residues", [" ".join(one) for one in proteins]
    yield "DNA", dna
    for k in _K_MERS:
        yield (
            f"DNA as {k}-mers",
            [" ".join(one[i : i + k] for i in range(len(one) - k + 1)) for one in dna],
        )
    for path in (TEXTS / "reactions.txt", TEXTS / "molecules.txt"):
        yield path.stem, read_lines(path)
    for path in sorted((TEXTS / "languages").iterdir()):
        yield f"texts in the language {path.stem}", read_lines(path)
