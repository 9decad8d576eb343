"""Lines of each room of the repository beside its budget, for `make check`.

    python -m tests.budget

A budget only falls, but for a decision; docs/architecture.md says why. Lines are counted as `wc -l`
counts them. Rooms shrink by fewer rules and not by denser lines: the formatter and its 100 columns
stay, and no module may be longer than LONGEST, nor the median above MEDIAN.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LONGEST, MEDIAN = 311, 115


class Room(NamedTuple):
    """Part of the repository.

    Attributes:
        folders: folders of the room.
        suffixes: ends of the names of its files.
        budget: maximum number of lines.
    """

    folders: tuple[str, ...]
    suffixes: tuple[str, ...]
    budget: int


PAGE = ("service/fillmask/playground",)
ROOMS = {
    "service": Room(("service",), (".py",), 20_045),
    "page": Room(PAGE, (".js", ".css", ".html"), 3_690),
    "model": Room(("model",), (".py", ".sh"), 10_370),
    "export": Room(("export",), (".py",), 5_640),
    "native": Room(("native/src",), (".cpp", ".hpp"), 1_300),
    "benchmarks": Room(("benchmarks", "examples"), (".py", ".lua"), 4_500),
    "tests": Room(("tests",), (".py", ".js", ".sh"), 46_200),
}
PRODUCT = ("service", "model", "export")


def lines_of(room: Room) -> dict[str, int]:
    """Return the number of lines of each file of a room, whether git tracks it yet or not."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *room.folders]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = {name for name in listed.split("\0") if name.endswith(room.suffixes)}
    return {
        name: (ROOT / name).read_bytes().count(b"\n") for name in files if (ROOT / name).is_file()
    }


def main() -> int:
    """Print the table and return 1 if a room or a module is too large."""
    lines = {name: lines_of(room) for name, room in ROOMS.items()}
    modules = {name: count for room in PRODUCT for name, count in lines[room].items()}
    longest = max(modules, key=modules.__getitem__)
    median = round(statistics.median(count for count in modules.values() if count > 1))
    rows = [(name, sum(lines[name].values()), room.budget) for name, room in ROOMS.items()]
    rows += [(f"longest: {longest}", modules[longest], LONGEST)]
    rows += [("median of a product module", median, MEDIAN)]
    for name, count, budget in rows:
        print(f"{count:8,} of {budget:6,} lines  {name}{'' if count <= budget else '  TOO MANY'}")
    return int(any(count > budget for _, count, budget in rows))


if __name__ == "__main__":
    sys.exit(main())
