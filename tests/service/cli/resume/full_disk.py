"""Disk with too little space."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

TOO_LARGE = os.strerror(errno.EFBIG)


@contextmanager
def limited_files(size_bytes: int) -> Iterator[None]:
    """Let the system reject writes beyond a file size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
