"""Settings from flags, FILLMASK_ environment variables and defaults, in this order of precedence.

Only this package and `fillmask.health_check` read the FILLMASK_ variables.
"""

import argparse
import difflib
import os
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from pydantic import ValidationError

from fillmask import __version__
from fillmask.errors import SettingsError, quote
from fillmask.settings.settings import (
    ENV_PREFIX,
    Settings,
    allowed,
    help_text,
    metavar,
    settings_by_group,
)

_MAX_FLAG_COLUMNS = 30  # a longer flag has its help on the next line


def read_settings(arguments: Sequence[str]) -> Settings:
    """Read the settings, with flags such as `["--max-texts", "8"]`.

    Raises:
        SettingsError: a flag or a FILLMASK_ variable is unknown or has an invalid value.
        SystemExit: the flags contain --help or --version.
    """
    flags = _read_flags(arguments)
    _reject_unknown_variables()
    try:
        settings = Settings(**flags)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).lower().removeprefix(ENV_PREFIX.lower())
        source = flag(name) if name in flags else _variable(name)
        raise SettingsError(
            f"{source} must be {allowed(name)} (got {quote(str(first['input']))})."
        ) from None
    if settings.checkpoint and "bundle" in settings.model_fields_set:
        raise SettingsError("bundle and checkpoint exclude each other; remove one of them.")
    if settings.metrics_port and settings.metrics_port == settings.port:
        raise SettingsError(
            f"metrics_port must differ from port (both are {settings.port}); set another port, or "
            "0 to serve metrics only on the main port."
        )
    if settings.log_texts and settings.log_level != "debug":
        raise SettingsError(
            f"log_texts requires log_level debug (got {settings.log_level}); set log_level to "
            "debug or log_texts to false."
        )
    return settings


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _variable(name: str) -> str:
    return ENV_PREFIX + name.upper()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError(f"{message}; run {self.prog} --help for the flags.")


def _read_flags(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the values of the flags by the names of their settings.

    The command line of pydantic-settings reads `--api-keys-file=None` as no file.
    """
    parser = _Parser(
        prog="fillmask-serve",
        usage="%(prog)s [FLAG VALUE]...",
        description="Serve a masked language model over HTTP.",
        epilog=f"Each flag is also an environment variable: {flag('max_texts')} is "
        f"{_variable('max_texts')}. A flag takes precedence over its variable.",
        formatter_class=partial(argparse.HelpFormatter, max_help_position=_MAX_FLAG_COLUMNS),
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--version", action="version", version=f"fillmask {__version__}")
    for title, fields in settings_by_group().items():
        group = parser.add_argument_group(title.lower())
        for name, field in fields.items():
            group.add_argument(flag(name), metavar=metavar(name, field), help=help_text(field))
    flags, unknown = parser.parse_known_args(arguments)
    if unknown:
        closest = _nearest(unknown[0], [flag(name) for name in Settings.model_fields])
        raise SettingsError(f"Unknown argument {quote(unknown[0])}; remove it or use {closest}.")
    return vars(flags)


def _reject_unknown_variables() -> None:
    """Reject unknown FILLMASK_ variables, which pydantic-settings ignores."""
    known = [_variable(name) for name in Settings.model_fields]
    given = {
        name.upper(): name for name in sorted(os.environ) if name.upper().startswith(ENV_PREFIX)
    }
    for upper, name in given.items():
        # one of several variables for a Service whose name begins with fillmask
        if upper.endswith("SERVICE_HOST"):
            raise SettingsError(
                f"The variable {name}, which Kubernetes sets for a Service, conflicts with the "
                "settings; set enableServiceLinks: false in the pod."
            )
    for upper, name in given.items():
        if upper not in known:
            raise SettingsError(
                f"Unknown variable {quote(name)}; remove it or use {_nearest(upper, known)}."
            )


def _nearest(name: str, known: Sequence[str]) -> str:
    return difflib.get_close_matches(name, known, n=1, cutoff=0)[0]
