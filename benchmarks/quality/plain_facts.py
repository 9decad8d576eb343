"""Accuracy of a bundle on plain facts, such as colours, places, parts, uses, sounds and opposites.

    .venv-dev/bin/python -m benchmarks.quality.plain_facts [BUNDLE]

plain_facts.tsv contains 60 sentences of six kinds, with the columns kind, text and accepted
answers. The sentences existed before the training. The training text excludes them (`fillmask-train
mix --leave-out`). No model selection uses the sentences. The default BUNDLE is the built-in bundle.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.quality.cloze import probe, table
from fillmask.bundles.bundle import default_bundle_path

FACTS = Path(__file__).with_name("plain_facts.tsv")


def main() -> None:
    """Print the accuracy by kind and the sentences without an accepted fill in the top five."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default_bundle_path()
    tallies = probe(path, FACTS)
    print(table(tallies), "\n\nmissed:")
    for tally in tallies.values():
        print("\n".join(tally.missed))


if __name__ == "__main__":
    main()
