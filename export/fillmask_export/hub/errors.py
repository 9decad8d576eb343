"""Errors of a download from a hub, as one sentence for the user."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

_CACHE_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}


class HubError(ValueError):
    """Failure to download a checkpoint, with a message for the user."""


def hub_address() -> str:
    """Return the address of the hub without a user name and a password."""
    return _without_user(constants.ENDPOINT)


def absent_file(repository: str, revision: str, name: str) -> str:
    return f"{repository} at {revision} has no file {name}; name another revision"


@contextmanager
def readable_errors(repository: str, revision: str) -> Iterator[None]:
    """Convert the errors of huggingface_hub and of its HTTP client.

    Raises:
        HubError: the hub, the network or the cache has caused an error.
    """
    try:
        yield
    # hf_xet, which downloads large files from Hugging Face's storage, raises RuntimeError
    except (httpx2.HTTPError, OSError, RuntimeError) as error:
        cause: Exception = error
        if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
            cause = error.__cause__
        raise HubError(_explain(cause, repository, revision)) from None


def _explain(error: Exception, repository: str, revision: str) -> str:
    if isinstance(error, HfHubHTTPError):
        return _explain_response(error, repository, revision)
    if isinstance(error, OSError) and error.errno in _CACHE_ERRNOS:
        return (
            f"the cache {constants.HF_HUB_CACHE} is not writable ({error.strerror}); free some "
            "space or change its permissions, or set HF_HOME to another directory"
        )
    absent = f"the directory {repository} does not exist"
    if constants.is_offline_mode():
        return (
            f"{absent}, and the cache {constants.HF_HUB_CACHE} has no complete download of "
            f"{repository} at {revision}; unset HF_HUB_OFFLINE to download it"
        )
    if isinstance(error, httpx2.TransportError):
        return (
            f"{absent}, and {hub_address()} is not reachable ({_one_line(error)}); check the "
            "network and HF_ENDPOINT, or name a directory. HF_HUB_OFFLINE=1 selects an earlier "
            "download"
        )
    return (
        f"the download of {repository} from {hub_address()} has failed ({_one_line(error)}); "
        "run the command again"
    )


def _explain_response(error: HfHubHTTPError, repository: str, revision: str) -> str:
    hub, status = hub_address(), error.response.status_code
    if isinstance(error, GatedRepoError):
        return (
            f"{repository} is a gated repository; accept its conditions on {hub}/{repository}, "
            "then set HF_TOKEN to a token of that account"
        )
    if isinstance(error, RevisionNotFoundError):
        return (
            f"{repository} has no revision {revision!r}; name a branch, a tag or a full commit hash"
        )
    if isinstance(error, EntryNotFoundError):
        return absent_file(repository, revision, error.response.url.path.rpartition("/")[2])
    if status == 404 or isinstance(error, RepositoryNotFoundError):
        return (
            f"the directory {repository} does not exist, and {hub} has no repository of this name "
            "that you may read; correct the name, or set HF_TOKEN to a token with access to it"
        )
    if status in {401, 403}:
        return (
            f"{hub} denies access to {repository} (status {status}); set HF_TOKEN to a valid "
            "token with access to it"
        )
    return f"{hub} answers with status {status} ({_one_line(error)}); try again later"


def _one_line(error: Exception) -> str:
    return _without_user(" ".join(str(error).split()))[:200].rstrip(".")


def _without_user(text: str) -> str:
    return re.sub(r"(?<=://)[^/\s]*@", "", text)
