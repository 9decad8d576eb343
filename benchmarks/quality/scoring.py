"""Agreement and speed of scoring, compared with minicons on the same weights.

    .venv-comparison/bin/python -m benchmarks.quality.scoring [minilm | bert-base]

fillmask and minicons score the same texts in turn, in this process and on the same CPUs. minicons'
MaskedLMScorer gets batches of 8 texts. fillmask forms batches with its queue. The weights are those
of `make comparison`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from minicons.scorer import MaskedLMScorer

from benchmarks.comparison.texts import FILE
from benchmarks.comparison.workspace import Workspace
from service.bundles.bundle import read_bundle
from service.engine.batcher import Batcher
from service.engine.runtime import Runtime
from service.host import usable_cpus
from service.settings import Settings
from service.tasks.scoring import ScoringPipeline, TextScore, Variant
from service.tokenization.tokenizer import Tokenizer

TEXTS, ROUNDS, TOGETHER = 20, 2, 8
METRICS: dict[Variant, str] = {"within_word": "within_word_l2r", "original": "original"}


def main() -> None:
    """Print the throughput and the differences of all scorers."""
    size = sys.argv[1] if len(sys.argv) > 1 else "bert-base"
    workspace = Workspace(size)
    texts = FILE.read_text(encoding="utf-8").splitlines()[:TEXTS]
    torch.set_num_threads(usable_cpus())
    theirs = MaskedLMScorer(str(workspace.checkpoint), "cpu")
    # minicons 0.3 needs this method, which transformers 5 has renamed to __call__
    type(theirs.tokenizer).batch_encode_plus = type(theirs.tokenizer).__call__
    ways: dict[str, Callable[[Variant], list[list[float]]]] = {
        "minicons": lambda variant: _minicons(theirs, texts, variant),
        **{f"ours, {p}": _ours(workspace.bundle(p), texts) for p in ("fp32", "int8")},
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
                difference[name] = max(
                    float(np.abs(np.subtract(a, b)).max())
                    for a, b in zip(found, expected, strict=True)
                )
        for name, taken in seconds.items():
            print(
                f"| {name} | {variant} | {ROUNDS * TEXTS / taken:.1f} "
                f"| {seconds['minicons'] / taken:.1f}x | {difference[name]:.1g} |"
            )


def _minicons(scorer: MaskedLMScorer, texts: Sequence[str], variant: Variant) -> list[list[float]]:
    scores = []
    for start in range(0, len(texts), TOGETHER):
        some = list(texts[start : start + TOGETHER])
        scored = scorer.token_score(some, PLL_metric=METRICS[variant])
        scores += [[float(log_prob) for _, log_prob in text] for text in scored]
    return scores


def _ours(directory: Path, texts: Sequence[str]) -> Callable[[Variant], list[list[float]]]:
    bundle = read_bundle(directory)
    tokenizer, runtime = Tokenizer.from_bundle(bundle), Runtime(bundle.model_path)

    async def score(variant: Variant) -> list[list[float]]:
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
            scores = await scoring.score(texts, [variant] * len(texts), "inputs")
            return [
                [token.log_prob for token in one.tokens]
                for one in scores
                if isinstance(one, TextScore)
            ]
        finally:
            await batcher.close()

    return lambda variant: asyncio.run(score(variant))


if __name__ == "__main__":
    main()
