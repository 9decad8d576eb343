"""Conversion of everything that may go wrong with a bundle into a BundleError."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fillmask.bundles.validation import unreadable
from fillmask.errors import BundleError, StartupError, safe_traceback

# what ends a task or the process and says nothing about a bundle
NOT_FAILURES = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)

_log = logging.getLogger(__name__)


@contextmanager
def as_bundle_errors(path: Path) -> Iterator[None]:
    """Convert any other error than a StartupError into a BundleError.

    A panic of the tokenizers library is a BaseException but not an Exception.

    Args:
        path: directory of the bundle.
    """
    try:
        yield
    except (StartupError, *NOT_FAILURES):
        raise
    except OSError as error:
        raise unreadable(path, error) from error
    except MemoryError as error:
        raise BundleError(
            f"The bundle {path} needs more memory than the process has; raise the memory limit or "
            "use a smaller model."
        ) from error
    except BaseException as error:
        _log.debug("the bundle cannot be loaded:\n%s", safe_traceback(error))
        raise BundleError(
            f"The bundle {path} cannot be loaded ({type(error).__name__}); export the bundle again."
        ) from error
