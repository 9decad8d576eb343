"""`fillmask-export`, and a plain word where the serving install lacks what it needs."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command; returns the exit status."""
    try:
        # imported here: the serving install has this command, but not the packages behind it
        from export import commands  # noqa: PLC0415
    except ModuleNotFoundError as error:
        print(
            f"fillmask-export needs {error.name}, which the serving install leaves out: "
            "pip install 'fillmask[train]'",
            file=sys.stderr,
        )
        return 2
    return commands.main()


if __name__ == "__main__":
    sys.exit(main())
