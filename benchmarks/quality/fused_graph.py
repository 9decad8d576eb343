"""Agreement of the fused graph of an int8 bundle with its stock graph and with the encoder in fp32.

    .venv-comparison/bin/python -m benchmarks.quality.fused_graph [BUNDLE] [TEXTS]

Each of 2,000 passes masks one token of a text. The encoder in fp32 has the weights of the bundle
(`fillmask_export.restore`), so that only the arithmetic differs. By default the bundle is the
built-in one, and the texts are those of the comparison, one per line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparison.texts import FILE
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.registry.graph_choice import choose_graph, stock_graph
from fillmask.tokenization.tokenizer import Tokenizer
from fillmask_export.restore import restore
from fillmask_export.verification.fills import encoder_log_probs

MASKS, MASKS_PER_TEXT, TOP_K = 2000, 12, 5
PASSES_PER_RUN = 8


def main() -> None:
    """Print the shares of masks with the same first token, and differences of log-probabilities."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default_bundle_path()
    file = Path(sys.argv[2]) if len(sys.argv) > 2 else FILE
    bundle = read_bundle(path)
    choice = choose_graph(bundle, "auto")
    if choice.kind == "stock":
        raise SystemExit(choice.reason)
    tokenizer = Tokenizer.from_bundle(bundle)
    texts = file.read_text(encoding="utf-8").splitlines()
    passes = list(masked(texts, tokenizer, bundle.max_tokens))[:MASKS]
    stock = stock_graph(bundle, "")
    fused_ids, fused_values = first_tokens(
        Runtime(choice.path, operators=choice.operators, packed=choice.packed), passes
    )
    stock_ids, stock_values = first_tokens(Runtime(stock.path), passes)
    exact_MV = encoder_log_probs(restore(bundle), passes)
    exact_ids = exact_MV.argmax(1)
    print(f"{len(passes)} masks, {choice.reason}")
    print(f"the same first token in both graphs: {(fused_ids == stock_ids)[:, 0].mean():.1%}")
    for name, ids, values in (
        ("stock", stock_ids, stock_values),
        ("fused", fused_ids, fused_values),
    ):
        differences = np.abs(values - np.take_along_axis(exact_MV, ids, 1))
        print(
            f"{name} graph: the first token of fp32 at {(ids[:, 0] == exact_ids).mean():.1%}, "
            f"top {TOP_K} within {differences.mean():.4f} nats on average, "
            f"{np.percentile(differences, 99):.3f} at the 99th percentile"
        )


def masked(texts: Sequence[str], tokenizer: Tokenizer, max_tokens: int) -> Iterator[ModelPass]:
    """Yield passes with one mask each, up to MASKS_PER_TEXT from a text."""
    for text in texts:
        ids = tokenizer.encode(text).input_ids
        if not 5 <= len(ids) <= max_tokens:
            continue
        count = min(MASKS_PER_TEXT, len(ids) - 2)
        for position in np.linspace(1, len(ids) - 2, count).astype(int):
            changed = ids.copy()
            changed[position] = tokenizer.mask_token_id
            yield ModelPass(changed, np.array([position]), TOP_K, no_targets(1))


def first_tokens(
    runtime: Runtime, passes: Sequence[ModelPass]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the top ids (M, k) of all passes and their log-probabilities (M, k)."""
    outputs = [
        runtime.run(Batch.pack(passes[start : start + PASSES_PER_RUN]))
        for start in range(0, len(passes), PASSES_PER_RUN)
    ]
    ids = np.concatenate([one.top_ids for one in outputs])
    return ids, np.concatenate([one.top_log_probs for one in outputs])


if __name__ == "__main__":
    main()
