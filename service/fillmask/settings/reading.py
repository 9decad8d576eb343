"""Settings from flags, FILLMASK_ environment variables and defaults, in this order of precedence.

Only this package and `fillmask.health_check` read the FILLMASK_ variables.
"""

import os
from collections.abc import Sequence

from pydantic import ValidationError

from fillmask.errors import SettingsError, quote
from fillmask.settings.flags import flag, nearest, read_flags
from fillmask.settings.settings import ENV_PREFIX, Settings, allowed, settings_by_group


def read_settings(arguments: Sequence[str]) -> Settings:
    """Read the settings from the environment and from flags such as `["--max-texts", "8"]`.

    Raises:
        SettingsError: a flag or a FILLMASK_ variable is unknown or has an invalid value.
        SystemExit: the flags contain --help or --version.
    """
    flags = read_flags(
        arguments,
        settings_by_group(),
        f"Each flag is also an environment variable: {flag('max_texts')} is "
        f"{_variable('max_texts')}. A flag takes precedence over its variable.",
    )
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
            closest = nearest(upper, known)
            raise SettingsError(f"Unknown variable {quote(name)}; remove it or use {closest}.")


def _variable(name: str) -> str:
    return ENV_PREFIX + name.upper()
