"""Settings of the server and of the command."""

from fillmask.settings.reading import flag, read_settings
from fillmask.settings.settings import ENV_PREFIX, MAX_THREADS, Settings

__all__ = ["ENV_PREFIX", "MAX_THREADS", "Settings", "flag", "read_settings"]
