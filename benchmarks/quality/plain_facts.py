"""Rate at which a bundle knows plain facts: colours, places, parts, uses, sounds and opposites.

    .venv-dev/bin/python -m benchmarks.quality.plain_facts [BUNDLE]

60 sentences in six kinds stand in plain_facts.tsv: kind, text, accepted answers. They were written
before the training that they measure, are left out of its text (`fillmask-train mix --leave-out`)
and choose no model. The built-in bundle is the default.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.quality.cloze import probe, table
from service.bundles.bundle import default_bundle_path

FACTS = Path(__file__).with_name("plain_facts.tsv")


def main() -> None:
    """Print rates by kind, and the sentences whose answer is not among the first five."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default_bundle_path()
    tallies = probe(path, FACTS)
    print(table(tallies), "\n\nmissed:")
    for tally in tallies.values():
        print("\n".join(tally.missed))


if __name__ == "__main__":
    main()
