"""Settings of the server and of the command."""

from fillmask.settings.reading import read_settings
from fillmask.settings.settings import (
    ENV_PREFIX,
    MAX_THREADS,
    Settings,
    allowed,
    settings_by_group,
)

__all__ = [
    "ENV_PREFIX",
    "MAX_THREADS",
    "Settings",
    "allowed",
    "read_settings",
    "settings_by_group",
]
