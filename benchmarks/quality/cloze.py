"""Accuracy of a bundle on a cloze probe (Taylor 1953) with everyday prompts.

    .venv-dev/bin/python -m benchmarks.quality.cloze [BUNDLE [PROMPTS]]

PROMPTS is a table with the columns kind, text and accepted answers: cloze_probe.tsv by default, 130
hand-written prompts of ten kinds, or plain_facts.tsv, 60 of six kinds. No training run and no model
selection uses them. The default BUNDLE is the built-in bundle.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import generated_block
from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.engine.runtime import Runtime
from fillmask.tokenization.tokenizer import Tokenizer

PROBE = Path(__file__).with_name("cloze_probe.tsv")
TOP_K = 5


@dataclass
class Tally:
    """Counts for one kind of prompt.

    Attributes:
        first: number of prompts whose first fill is accepted.
        among_five: number of prompts with an accepted fill among the first five.
        missed: prompts without an accepted fill, with their fills.
    """

    prompts: int = 0
    first: int = 0
    among_five: int = 0
    missed: list[str] = field(default_factory=list)


def main() -> None:
    """Print the accuracy by kind and the missed prompts.

    The function also writes the table of the built-in bundle into the model card.
    """
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default_bundle_path()
    tallies = probe(path, *map(Path, sys.argv[2:]))
    print(table(tallies), "\n\nmissed:")
    for tally in tallies.values():
        print("\n".join(tally.missed))
    if len(sys.argv) == 1:
        generated_block.write(generated_block.MODEL_CARD, "quality/cloze", table(tallies))


def probe(path: Path, prompts: Path = PROBE) -> dict[str, Tally]:
    """Count a bundle's accepted fills by kind of prompt."""
    bundle = read_bundle(path)
    tokenizer = Tokenizer.from_bundle(bundle)
    runtime = Runtime(bundle.model_path)
    tallies: dict[str, Tally] = defaultdict(Tally)
    for line in prompts.read_text(encoding="utf-8").splitlines():
        kind, text, answers = line.split("\t")
        fills = _fills(text.replace("[MASK]", bundle.mask_token), tokenizer, runtime)
        accepted = set(answers.split())
        tally = tallies[kind]
        tally.prompts += 1
        tally.first += fills[0] in accepted
        tally.among_five += bool(accepted & set(fills))
        if not accepted & set(fills):
            tally.missed.append(f"{text} -> {', '.join(fills)}")
    return tallies


def table(tallies: Mapping[str, Tally]) -> str:
    """Format the accuracy by kind and in total."""
    lines = ["| kind | prompts | top 1 | top 5 |", "|---|---|---|---|"]
    for kind, tally in [*tallies.items(), ("all", _sum(tallies.values()))]:
        first, among = (
            f"{100 * count / tally.prompts:.0f} %" for count in (tally.first, tally.among_five)
        )
        lines.append(f"| {kind} | {tally.prompts} | {first} | {among} |")
    return "\n".join(lines)


def _fills(text: str, tokenizer: Tokenizer, runtime: Runtime) -> list[str]:
    encoded = tokenizer.encode(text)
    asked = TOP_K + len(tokenizer.special_token_ids)
    request = ModelPass(encoded.input_ids, encoded.mask_positions, asked, no_targets(1))
    top_ids = runtime.run(Batch.pack([request])).top_ids[0].tolist()
    ordinary = [i for i in top_ids if i not in tokenizer.special_token_ids]
    return [tokenizer.token_str(i).strip().lower() for i in ordinary[:TOP_K]]


def _sum(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total.prompts += tally.prompts
        total.first += tally.first
        total.among_five += tally.among_five
    return total


if __name__ == "__main__":
    main()
