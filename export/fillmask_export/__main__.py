"""Entry point of `fillmask-export`."""

from __future__ import annotations

import signal
import sys

from fillmask_model.__main__ import naming_missing_packages, spin_briefly


def main() -> int:
    spin_briefly()
    with naming_missing_packages("fillmask-export"):
        # imported here, because the serving environment lacks the dependencies of this command
        from fillmask_export import commands  # noqa: PLC0415
    try:
        return commands.main()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
