"""Limits on what a hub may answer, so that a hostile or intercepted hub cannot do harm.

huggingface_hub writes the ETag and the commit of an answer into paths of its cache, and reads
answers of any size into memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
from huggingface_hub import get_session
from huggingface_hub.hf_api import RepoSibling

from fillmask_export.hub.errors import HubError, hub_address

MAX_ANSWER_BYTES = 32 * 2**20  # of a list of files, whose largest known has 1 MB
_NAMES = {
    "etag": re.compile(r'(W/)?"?[A-Za-z0-9_+=-]{1,128}"?'),
    "x-linked-etag": re.compile(r'(W/)?"?[A-Za-z0-9_+=-]{1,128}"?'),
    "x-repo-commit": re.compile(r"[0-9a-f]{40}"),
}
_GIT_LENGTH = 40


def is_commit(text: str) -> bool:
    return _NAMES["x-repo-commit"].fullmatch(text) is not None


def limit_answers(largest_bytes: int) -> None:
    """Check every answer that huggingface_hub receives from now on.

    Args:
        largest_bytes: size of the largest file.

    Raises:
        HubError: during a request of huggingface_hub, for an answer that breaks a limit.
    """

    def check(response: httpx2.Response) -> None:
        _check_headers(response)
        path = response.request.url.path
        is_list = "/api/models/" in path and "/resolve/" not in path
        most = MAX_ANSWER_BYTES if is_list else max(largest_bytes, MAX_ANSWER_BYTES)
        response.stream = _LimitedStream(response.stream, most)

    session = get_session()
    # compressed answers may be a thousand times as large in memory
    session.headers["Accept-Encoding"] = "identity"
    session.event_hooks = session.event_hooks | {"response": [check]}


class _LimitedStream(httpx2.SyncByteStream):
    def __init__(self, stream: object, most_bytes: int) -> None:
        self._stream, self._most_bytes = stream, most_bytes

    def __iter__(self) -> Iterator[bytes]:
        received = 0
        for part in self._stream:  # type: ignore[attr-defined]  # the stream of a synchronous client
            received += len(part)
            if received > self._most_bytes:
                raise HubError(
                    f"{hub_address()} sends more than the {self._most_bytes} bytes that an answer "
                    "may have; correct HF_ENDPOINT or the proxy"
                )
            yield part

    def close(self) -> None:
        self._stream.close()  # type: ignore[attr-defined]  # the same


def _check_headers(response: httpx2.Response) -> None:
    for name, pattern in _NAMES.items():
        value = response.headers.get(name)
        if value is not None and not pattern.fullmatch(value):
            raise HubError(
                f"{hub_address()} must send a hash as {name} (got {value[:100]!r}); correct "
                "HF_ENDPOINT or the proxy"
            )
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise HubError(
            f"{hub_address()} must send files as they are (got the encoding {encoding[:100]!r}); "
            "correct HF_ENDPOINT or the proxy"
        )


def check_content(path: Path, listed: RepoSibling) -> None:
    """Compare a file with the hash that the hub has listed, if any, and remove another file.

    The hub lists SHA-256 of a large file, and SHA-1 of Git's object of any other.

    Raises:
        HubError: the content has another hash.
    """
    digest = listed.lfs.sha256 if listed.lfs else listed.blob_id
    if not digest:
        return
    hashed = hashlib.sha256()
    if len(digest) == _GIT_LENGTH:
        hashed = hashlib.sha1(b"blob %d\0" % path.stat().st_size)  # noqa: S324 - Git's own hash
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashed).hexdigest()
    if found == digest:
        return
    path.resolve().unlink()
    path.unlink(missing_ok=True)
    raise HubError(
        f"{path.name} must have the hash {digest}, which {hub_address()} lists (got {found}); run "
        "the command again, or correct HF_ENDPOINT or the proxy"
    )
