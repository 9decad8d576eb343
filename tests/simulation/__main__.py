"""Command that simulates the service under seeds and reports the first broken promise."""

import argparse
import sys
import time
from collections import Counter
from hashlib import blake2b

from tests.simulation.seeds import Outcome, run_seed, run_seeds


def main() -> int:
    """Run the seeds. Return 1 after a violation, otherwise 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay one seed")
    parser.add_argument("--trace", action="store_true", help="print all events of --seed")
    parser.add_argument("--seeds", type=int, help="number of seeds (by default no limit)")
    parser.add_argument("--seconds", type=float, default=300.0, help="in which to start seeds")
    options = parser.parse_args()
    started_s = time.monotonic()
    if options.seed is not None:
        return _report([run_seed(options.seed, show=options.trace)], started_s)
    outcomes = []
    for outcome in run_seeds(options.seconds, options.seeds):
        outcomes.append(outcome)
        if outcome.violation is not None:
            break
    return _report(outcomes, started_s)


def _report(outcomes: list[Outcome], started_s: float) -> int:
    statuses = sum((one.statuses for one in outcomes), Counter[str]())
    faults = sum((one.faults for one in outcomes), Counter[str]())
    for title, counter in (("requests", statuses), ("faults", faults)):
        kinds = ", ".join(f"{number:,} {name}" for name, number in counter.most_common())
        print(f"{counter.total():,} {title}: {kinds}")
    print(f"{len(outcomes)} seeds from {outcomes[0].seed} in {time.monotonic() - started_s:.0f} s")
    last = outcomes[-1]
    print("digest", blake2b("".join(one.digest for one in outcomes).encode()).hexdigest()[:32])
    if last.violation is None:
        return 0
    print("\n".join([*last.last_events, "", f"Seed {last.seed} breaks a promise:"]))
    print(last.violation)
    print(f"Replay it: python -m tests.simulation --seed {last.seed} --trace")
    return 1


if __name__ == "__main__":
    sys.exit(main())
