"""Accuracy of a bundle on a cloze probe (Taylor 1953) with everyday prompts.

    .venv-dev/bin/python -m benchmarks.quality.cloze [BUNDLE [PROMPTS]]

PROMPTS is a table with the columns kind, text and accepted answers: cloze_probe.tsv by default, 130
hand-written prompts of ten kinds, or plain_facts.tsv, 60 of six kinds. No training run and no model
selection uses them. The default BUNDLE is the built-in bundle.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import generated_block
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.tokenization.tokenizer import Tokenizer

PROBE = Path(__file__).with_name("cloze_probe.tsv")
TOP_K = 5


def main() -> None:
    """Print the accuracy by kind and the missed prompts.

    The function also writes the table of the built-in bundle into the model card.
    """
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default_bundle_path()
    ranks, missed = probe(path, *map(Path, sys.argv[2:]))
    print(table(ranks), "\n\nmissed:")
    print("\n".join(missed))
    if len(sys.argv) == 1:
        generated_block.write(generated_block.MODEL_CARD, "quality/cloze", table(ranks))


def probe(path: Path, prompts: Path = PROBE) -> tuple[dict[str, list[int]], list[str]]:
    """Ask a bundle for fills.

    Returns:
        The ranks from 0 of the first accepted fills by kind of prompt, TOP_K without one, and the
        prompts without one, with their fills.
    """
    bundle = read_bundle(path)
    tokenizer = Tokenizer.from_bundle(bundle)
    runtime = Runtime(bundle.model_path)
    ranks, missed = defaultdict[str, list[int]](list), []
    for line in prompts.read_text(encoding="utf-8").splitlines():
        kind, text, answers = line.split("\t")
        fills = _fills(text.replace("[MASK]", bundle.mask_token), tokenizer, runtime)
        right = [fill in answers.split() for fill in fills]
        ranks[kind].append(right.index(True) if any(right) else TOP_K)
        if not any(right):
            missed.append(f"{text} -> {', '.join(fills)}")
    return ranks, missed


def table(ranks: Mapping[str, Sequence[int]]) -> str:
    """Format the accuracy by kind and in total."""
    lines = ["| kind | prompts | top 1 | top 5 |", "|---|---|---|---|"]
    for kind, own in [*ranks.items(), ("all", [rank for one in ranks.values() for rank in one])]:
        first, among = (
            f"{100 * sum(rank < k for rank in own) / len(own):.0f} %" for k in (1, TOP_K)
        )
        lines.append(f"| {kind} | {len(own)} | {first} | {among} |")
    return "\n".join(lines)


def _fills(text: str, tokenizer: Tokenizer, runtime: Runtime) -> list[str]:
    encoded = tokenizer.encode(text)
    asked = TOP_K + len(tokenizer.special_token_ids)
    request = ModelPass(encoded.input_ids, encoded.mask_positions, asked, no_targets(1))
    top_ids = runtime.run(Batch.pack([request])).top_ids[0].tolist()
    ordinary = [i for i in top_ids if i not in tokenizer.special_token_ids]
    return [tokenizer.token_str(i).strip().lower() for i in ordinary[:TOP_K]]


if __name__ == "__main__":
    main()
