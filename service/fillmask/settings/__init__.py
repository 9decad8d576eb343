"""Settings of the server and of the command."""

from fillmask.settings.reading import flag, read_settings
from fillmask.settings.settings import (
    ENV_PREFIX,
    MAX_THREADS,
    Settings,
    allowed,
    default_text,
    help_text,
    metavar,
    settings_by_group,
)

__all__ = [
    "ENV_PREFIX",
    "MAX_THREADS",
    "Settings",
    "allowed",
    "default_text",
    "flag",
    "help_text",
    "metavar",
    "read_settings",
    "settings_by_group",
]
