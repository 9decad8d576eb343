"""Entry point of `fillmask-train`.

The command prints an installation command if the train extra is missing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def spin_briefly() -> None:
    """Let torch's threads sleep soon while they wait, unless the environment says otherwise.

    With the default of OpenMP's runtime (GCC's libgomp), the threads spin. Beside two other busy
    processes on two cores, a training step then takes nine times as long (docs/decisions/021).
    The runtime reads the variable when torch is imported.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


@contextmanager
def naming_missing_packages(command: str) -> Iterator[None]:
    """End the process with an installation command if an import in the `with` block fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        print(
            f"{command} needs {error.name}, which is not installed; run pip install "
            "'.[train]' in a checkout, or pip install 'PATH/TO/WHEEL[train]'.",
            file=sys.stderr,
        )
        raise SystemExit(2) from None


def main() -> int:
    spin_briefly()
    with naming_missing_packages("fillmask-train"):
        # imported here, because the serving install lacks the dependencies of this command
        from fillmask_model import commands  # noqa: PLC0415
    return commands.main()


if __name__ == "__main__":
    sys.exit(main())
