"""Entry point of `fillmask-export`.

The command prints an error message if a dependency of the extra `train` is missing.
"""

from __future__ import annotations

import signal
import sys

from fillmask_model.__main__ import spin_briefly


def main() -> int:
    spin_briefly()
    try:
        # imported here, because the serving environment lacks the dependencies of this command
        from fillmask_export import commands  # noqa: PLC0415
    except ModuleNotFoundError as error:
        print(
            f"fillmask-export needs {error.name}, which is not installed; run pip install "
            "'.[train]' in a checkout, or pip install 'PATH/TO/WHEEL[train]'.",
            file=sys.stderr,
        )
        return 2
    try:
        return commands.main()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
