"""Agreement and speed of scoring, compared with minicons on the same weights.

    .venv-comparison/bin/python -m benchmarks.quality.scoring [minilm | bert-base]

fillmask and minicons score the same texts in turn, in this process and on the same CPUs. minicons'
MaskedLMScorer gets batches of 8 texts. fillmask forms batches with its queue. The weights are those
of `make comparison`.

A second table compares the scores of a part of a text, given the rest, with minicons'
conditional_score. One part of 200 texts follows a prefix. One part of each text with three words
is between a prefix and a suffix. The command fails if a difference exceeds LARGEST_DIFFERENCE.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from minicons.scorer import MaskedLMScorer

from benchmarks.comparison.texts import FILE
from benchmarks.comparison.workspace import Workspace
from fillmask.bundles.bundle import read_bundle
from fillmask.engine.batcher import Batcher
from fillmask.engine.runtime import Runtime
from fillmask.host import usable_cpus
from fillmask.parameters.score import ScoreOptions, Variant
from fillmask.results.scores import TextScore
from fillmask.settings import Settings
from fillmask.tasks.scoring import ScoringPipeline
from fillmask.tokenization.tokenizer import Tokenizer

TEXTS, ROUNDS, TOGETHER = 20, 2, 8
METRICS: dict[Variant, str] = {"within_word": "within_word_l2r", "original": "original"}
PARTS, SEED = 200, 0
MAX_PART_WORDS = 12  # because minicons returns logits at all positions of all masked copies
LARGEST_DIFFERENCE = 1e-4  # nats, of a token and of the mean that conditional_score returns
Score = Callable[[Sequence[str], Sequence[ScoreOptions]], list[list[float]]]


@dataclass(frozen=True, slots=True)
class Part:
    """A text in three parts, of which the middle part is scored. Spaces separate the parts."""

    prefix: str
    scored: str
    suffix: str | None = None

    @property
    def text(self) -> str:
        """The whole text."""
        return " ".join(part for part in (self.prefix, self.scored, self.suffix) if part)

    def options(self, variant: Variant) -> ScoreOptions:
        """Return the options that select the scored part."""
        if self.suffix is None:
            return ScoreOptions(variant, prefix=self.prefix)
        start = len(self.prefix) + 1
        return ScoreOptions(variant, span=(start, start + len(self.scored)))


def main() -> None:
    """Print the throughput and the differences of all scorers."""
    size = sys.argv[1] if len(sys.argv) > 1 else "bert-base"
    workspace = Workspace(size)
    texts = FILE.read_text(encoding="utf-8").splitlines()
    torch.set_num_threads(usable_cpus())
    theirs = MaskedLMScorer(str(workspace.checkpoint), "cpu")
    # minicons 0.3 needs this method, which transformers 5 has renamed to __call__
    type(theirs.tokenizer).batch_encode_plus = type(theirs.tokenizer).__call__
    ours = {precision: _ours(workspace.bundle(precision)) for precision in ("fp32", "int8")}
    _compare_texts(theirs, ours, texts[:TEXTS])
    _compare_parts(theirs, ours, texts)


def _compare_texts(theirs: MaskedLMScorer, ours: dict[str, Score], texts: Sequence[str]) -> None:
    ways: dict[str, Callable[[Variant], list[list[float]]]] = {
        "minicons": lambda variant: _minicons(theirs, texts, variant),
        **{f"ours, {precision}": _with_variant(score, texts) for precision, score in ours.items()},
    }
    print(
        "| | variant | texts/s | times minicons | largest difference, nats |\n|---|---|--:|--:|--:|"
    )
    for variant in METRICS:
        expected = ways["minicons"](variant)
        seconds = dict.fromkeys(ways, 0.0)
        difference = dict.fromkeys(ways, 0.0)
        for _ in range(ROUNDS):
            for name, way in ways.items():
                started = time.perf_counter()
                found = way(variant)
                seconds[name] += time.perf_counter() - started
                difference[name] = max(difference[name], _largest_difference(found, expected))
        for name, taken in seconds.items():
            print(
                f"| {name} | {variant} | {ROUNDS * TEXTS / taken:.1f} "
                f"| {seconds['minicons'] / taken:.1f}x | {difference[name]:.1g} |"
            )


def _compare_parts(theirs: MaskedLMScorer, ours: dict[str, Score], texts: Sequence[str]) -> None:
    print(
        "\n| | scored part | variant | parts | tokens | largest difference of a token, nats "
        "| of a mean | of a sum |\n|---|---|---|--:|--:|--:|--:|--:|"
    )
    for name, parts in (("after a prefix", _after(texts)), ("between two texts", _between(texts))):
        for variant in METRICS:
            expected = _conditional(theirs, parts, variant)
            tokens = sum(map(len, expected))
            for precision, score in ours.items():
                options = [part.options(variant) for part in parts]
                found = score([part.text for part in parts], options)
                pairs = list(zip(found, expected, strict=True))
                token = _largest_difference(found, expected)
                mean = max(abs(fmean(a) - fmean(b)) for a, b in pairs)
                total = max(abs(fsum(a) - fsum(b)) for a, b in pairs)
                print(
                    f"| {precision} | {name} | {variant} | {len(parts)} | {tokens} "
                    f"| {token:.1g} | {mean:.1g} | {total:.1g} |"
                )
                if precision == "fp32" and max(token, mean) > LARGEST_DIFFERENCE:
                    raise SystemExit(f"A difference exceeds {LARGEST_DIFFERENCE} nats.")


def _after(texts: Sequence[str]) -> list[Part]:
    """Split texts at a random space, with at most MAX_PART_WORDS words after it."""
    rng = random.Random(SEED)  # noqa: S311 - a choice, not a secret
    parts: list[Part] = []
    while len(parts) < PARTS:
        for text in texts[: PARTS - len(parts)]:
            words = text.split(" ")
            if len(words) > 1:
                start = rng.randrange(max(1, len(words) - MAX_PART_WORDS), len(words))
                parts.append(Part(" ".join(words[:start]), " ".join(words[start:])))
    return parts


def _between(texts: Sequence[str]) -> list[Part]:
    """Select random words inside each text of at least three words."""
    rng = random.Random(SEED)  # noqa: S311 - a choice, not a secret
    parts = []
    for words in (text.split(" ") for text in texts):
        if len(words) > 2:
            start = rng.randrange(1, len(words) - 1)
            end = rng.randrange(start + 1, min(start + 1 + MAX_PART_WORDS, len(words)))
            cuts = (words[:start], words[start:end], words[end:])
            parts.append(Part(*(" ".join(some) for some in cuts)))
    return parts


def _largest_difference(
    found: Sequence[Sequence[float]], expected: Sequence[Sequence[float]]
) -> float:
    return max(float(np.abs(np.subtract(a, b)).max()) for a, b in zip(found, expected, strict=True))


def _minicons(scorer: MaskedLMScorer, texts: Sequence[str], variant: Variant) -> list[list[float]]:
    scores = []
    for start in range(0, len(texts), TOGETHER):
        some = list(texts[start : start + TOGETHER])
        scored = scorer.token_score(some, PLL_metric=METRICS[variant])
        scores += [[float(log_prob) for _, log_prob in text] for text in scored]
    return scores


def _conditional(
    scorer: MaskedLMScorer, parts: Sequence[Part], variant: Variant
) -> list[list[float]]:
    """Return minicons' log-probability of each scored token."""
    scores: list[list[float]] = []
    for part in parts:
        scores += scorer.conditional_score(
            [part.prefix],
            [part.scored],
            suffix=None if part.suffix is None else [part.suffix],
            reduction=lambda log_probs: log_probs.tolist(),
            PLL_metric=METRICS[variant],
        )
    return scores


def _with_variant(score: Score, texts: Sequence[str]) -> Callable[[Variant], list[list[float]]]:
    return lambda variant: score(texts, [ScoreOptions(variant)] * len(texts))


def _ours(directory: Path) -> Score:
    bundle = read_bundle(directory)
    tokenizer, runtime = Tokenizer.from_bundle(bundle), Runtime(bundle.model_path)

    async def score(texts: Sequence[str], options: Sequence[ScoreOptions]) -> list[list[float]]:
        settings = Settings()
        batcher = Batcher(
            runtime.run,
            settings.threads,
            settings.max_batch_tokens,
            settings.max_waiting_tokens,
            10**9,
            10**9,
            print,
        )
        try:
            scoring = ScoringPipeline(tokenizer, batcher, bundle.max_tokens, 10**6)
            scores = await scoring.score(texts, options, "inputs")
            return [
                [token.log_prob for token in one.tokens]
                for one in scores
                if isinstance(one, TextScore)
            ]
        finally:
            await batcher.close()

    return lambda texts, options: asyncio.run(score(texts, options))


if __name__ == "__main__":
    main()
