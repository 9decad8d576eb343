"""Entry point of `fillmask-train`.

The command prints an installation command if the train extra is missing.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command and return the exit status."""
    try:
        # imported here, because the serving install lacks the dependencies of this command
        from fillmask_model import commands  # noqa: PLC0415
    except ModuleNotFoundError as error:
        print(
            f"fillmask-train needs {error.name}, which is not installed; run pip install "
            "'.[train]' in a checkout, or pip install 'PATH/TO/WHEEL[train]'.",
            file=sys.stderr,
        )
        return 2
    return commands.main()


if __name__ == "__main__":
    sys.exit(main())
