"""Accuracy of a bundle in ranking the right word above a similar wrong word.

    .venv-dev/bin/python -m benchmarks.quality.target_pairs [BUNDLE]

target_pairs.tsv contains 66 hand-written sentences, with the columns text, right word and wrong
word. The wrong word resembles the right word ("collarbone", "collarphone"). The script adds a
second wrong word, the right word with shuffled letters. Both words of a pair are targets of one
request. No training run and no model selection uses the sentences.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.runtime import Runtime
from fillmask.tasks.fill_mask.target_passes import TargetPasses
from fillmask.tasks.fill_mask.targets import Targets
from fillmask.tokenization.tokenizer import Tokenizer

MAX_PASSES = 512
PAIRS = Path(__file__).with_name("target_pairs.tsv")


@dataclass(frozen=True, slots=True)
class Pair:
    """Sentence with a right and a wrong word.

    Attributes:
        kind: kind of the wrong word, "wrong" or "shuffled".
        text: sentence with one mask.
        fits: right word.
        other: wrong word.
        tokens: numbers of tokens of the two words.
        log_probs: log-probabilities of the two words.
    """

    kind: str
    text: str
    fits: str
    other: str
    tokens: tuple[int, int]
    log_probs: tuple[float, float]

    @property
    def won(self) -> bool:
        """True if the right word has the higher log-probability."""
        return self.log_probs[0] > self.log_probs[1]


def main() -> None:
    """Print the accuracy by kind and the pairs whose wrong word has the higher probability."""
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
        text = text.replace("[MASK]", bundle.mask_token)
        encoded = tokenizer.encode(text)
        for kind, other in (("wrong", wrong), ("shuffled", shuffled(fits))):
            targets = Targets.resolve(tokenizer, [fits, other], MAX_PASSES)
            glued = tokenizer.glued_masks(text, encoded)
            passes = TargetPasses(encoded, targets, bundle.mask_token_id, glued)
            batch = Batch.pack(passes.model_passes)
            [[first, second]] = passes.log_probs(batch.unpack(runtime.run(batch))).tolist()
            first_ids, other_ids = targets.tokens(glued=glued[0]).ids
            tokens = (len(first_ids), len(other_ids))
            yield Pair(kind, text, fits, other, tokens, (first, second))


def shuffled(word: str) -> str:
    """Return the letters of a word in another, reproducible order."""
    draw = random.Random(word)  # noqa: S311 - a choice, not a secret
    letters = list(word)
    while "".join(letters) == word:
        draw.shuffle(letters)
    return "".join(letters)


if __name__ == "__main__":
    main()
