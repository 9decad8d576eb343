"""How often a bundle prefers a word of several tokens to one that only looks like it.

    .venv-dev/bin/python -m benchmarks.quality.target_pairs [BUNDLE]

66 hand-written sentences lie in target_pairs.tsv: text, the word that fits, and a wrong one made of
similar parts ("collarbone", "collarphone"). Beside the wrong one stands the same word with its
letters shuffled. Both words of a pair are targets of one request. They are for measuring only.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from service.bundles.bundle import default_bundle_path, read_bundle
from service.engine.batch_arrays import Batch
from service.engine.runtime import Runtime
from service.tasks.target_passes import TargetPasses
from service.tasks.targets import Targets
from service.tokenization.tokenizer import Tokenizer

MAX_PASSES = 512
PAIRS = Path(__file__).with_name("target_pairs.tsv")


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its two words.

    Attributes:
        kind: wrong or shuffled.
        text: with one mask.
        fits: the word that fits.
        other: the one that does not.
        tokens: of each of the two.
        log_probs: of each of the two.
    """

    kind: str
    text: str
    fits: str
    other: str
    tokens: tuple[int, int]
    log_probs: tuple[float, float]

    @property
    def won(self) -> bool:
        """Whether the word that fits has the higher score."""
        return self.log_probs[0] > self.log_probs[1]


def main() -> None:
    """Print the shares by kind, and what was lost."""
    pairs = list(compare(Path(sys.argv[1]) if len(sys.argv) > 1 else default_bundle_path()))
    print("| the other word | pairs | won | both of several tokens | won |\n|---|---|---|---|---|")
    for kind in ("wrong", "shuffled", ""):
        some = [pair for pair in pairs if pair.kind == kind or not kind]
        several = [pair for pair in some if min(pair.tokens) > 1]
        cells = [
            f"{len(p)} | {100 * sum(x.won for x in p) / len(p):.0f} %" for p in (some, several)
        ]
        print(f"| {kind or 'either'} | {' | '.join(cells)} |")
    print("\nlost:")
    for pair in pairs:
        if not pair.won:
            first, second = pair.log_probs
            print(f"{pair.text} {pair.fits} {first:.2f}, {pair.other} {second:.2f}")


def compare(directory: Path) -> Iterator[Pair]:
    """Score every pair."""
    bundle = read_bundle(directory)
    tokenizer = Tokenizer.from_bundle(bundle)
    runtime = Runtime(bundle.model_path)
    for line in PAIRS.read_text(encoding="utf-8").splitlines():
        text, fits, wrong = line.split("\t")
        encoded = tokenizer.encode(text.replace("[MASK]", bundle.mask_token))
        for kind, other in (("wrong", wrong), ("shuffled", shuffled(fits))):
            targets = Targets.resolve(tokenizer, [fits, other], MAX_PASSES)
            passes = TargetPasses(encoded, targets, bundle.mask_token_id)
            batch = Batch.pack(passes.model_passes)
            [[first, second]] = passes.log_probs(batch.unpack(runtime.run(batch))).tolist()
            tokens = (len(targets.token_ids[0]), len(targets.token_ids[1]))
            yield Pair(kind, text, fits, other, tokens, (first, second))


def shuffled(word: str) -> str:
    """The same letters in another order, the same each time."""
    draw = random.Random(word)  # noqa: S311 - a choice, not a secret
    letters = list(word)
    while "".join(letters) == word:
        draw.shuffle(letters)
    return "".join(letters)


if __name__ == "__main__":
    main()
