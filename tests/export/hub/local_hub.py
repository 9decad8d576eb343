"""Local hub with the protocol of Hugging Face's hub, and its storage of large files."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

ONE, OTHER = "1" * 40, "2" * 40  # commits
_LARGE = {".safetensors", ".bin", ".h5"}  # files that the hub redirects to its storage


class Request(NamedTuple):
    path: str  # without the query
    token: str | None
    user_agent: str


@dataclass
class Repository:
    """Files of a repository.

    Attributes:
        commits: directory of the files by commit.
        refs: commit by branch and tag.
        token: token that every request needs. None for a public repository.
        gated: whether the files are available only to people who accept conditions.
    """

    commits: dict[str, Path]
    refs: dict[str, str]
    token: str | None = None
    gated: bool = False


@dataclass
class LocalHub:
    """Running hub.

    Attributes:
        requests: received requests.
        stored: received requests for large files, at the storage.
        cut_bytes: number of bytes after which the storage closes the connection of the next
            response. None for a complete response.
        failing: names of files to which the hub responds with status 403.
        tamper: function that changes the body and the headers of the hub's answer to a path.
    """

    url: str = ""
    storage_url: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    stored: list[Request] = field(default_factory=list)
    cut_bytes: int | None = None
    failing: set[str] = field(default_factory=set)
    tamper: Callable[[str, bytes, dict[str, Any]], bytes] = lambda _, body, __: body

    def files(self) -> set[str]:
        """Return the names of the files that clients have requested."""
        paths = [request.path for request in self.requests]
        return {path.rpartition("/")[2] for path in paths if "/resolve/" in path}


class _Handler(BaseHTTPRequestHandler):
    hub: LocalHub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        request = Request(path, token, self.headers.get("User-Agent", ""))
        if f"http://{self.headers['Host']}" == self.hub.storage_url:
            self.hub.stored.append(request)
            self._send_stored(Path(path))
        else:
            self.hub.requests.append(request)
            self._send(*self._answer(path, token))

    def _answer(self, path: str, token: str | None) -> tuple[int, bytes, dict[str, Any]]:
        """Return status, body and headers of an answer of the hub."""
        found = re.fullmatch(r"/api/models/(.+?)(?:/(?:revision|tree)/(.+))?", path)
        file = re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path)
        match = found or file
        if match is None:
            return 404, b"", {}
        name, revision = match[1], match[2] or "main"
        repository = self.hub.repositories.get(name)
        if repository is None or repository.token not in {None, token}:
            return 401, b"", {"X-Error-Code": "RepoNotFound"}
        known = dict(zip(repository.commits, repository.commits, strict=True)) | repository.refs
        if revision not in known:
            return 404, b"", {"X-Error-Code": "RevisionNotFound"}
        commit = known[revision]
        directory = repository.commits[commit]
        if file is None:
            paths = sorted(path for path in directory.rglob("*") if path.is_file())
            files = [_description(one, str(one.relative_to(directory))) for one in paths]
            whole: Any = {"id": name, "sha": commit, "siblings": files}
            return 200, json.dumps(files if "/tree/" in path else whole).encode(), {}
        if repository.gated and token is None:
            return 401, b"", {"X-Error-Code": "GatedRepo"}
        return self._file(directory / file[3], commit)

    def _file(self, file: Path, commit: str) -> tuple[int, bytes, dict[str, Any]]:
        if file.name in self.hub.failing:
            return 403, b"", {}
        if not file.is_file():
            return 404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}
        content = file.read_bytes()
        tag = f'"{hashlib.sha256(content).hexdigest()}"'
        headers: dict[str, Any] = {"X-Repo-Commit": commit, "ETag": tag}
        if file.suffix not in _LARGE:
            return 200, content, headers
        linked = {"X-Linked-Size": len(content), "X-Linked-Etag": tag}
        return 302, b"", headers | linked | {"Location": f"{self.hub.storage_url}{file}"}

    def _send_stored(self, file: Path) -> None:
        content = file.read_bytes()
        first = int(re.sub(r"\D", "", self.headers.get("Range", "0")))
        place = f"bytes {first}-{len(content) - 1}/{len(content)}"
        last, self.hub.cut_bytes = self.hub.cut_bytes, None
        size = {"Content-Length": len(content) - first}
        ranged = {"Content-Range": place} if first else {}
        self._send(206 if first else 200, content[first:last], size | ranged)

    def _send(self, status: int, body: bytes, headers: dict[str, Any]) -> None:
        body = self.hub.tamper(self.path, body, headers)
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _description(file: Path, name: str) -> dict[str, Any]:
    """Return what a hub says of a file: the hash of Git's object, or of the content if large."""
    content = file.read_bytes()
    described = {"type": "file", "rfilename": name, "path": name, "size": len(content)}
    if file.suffix in _LARGE:
        digest = hashlib.sha256(content).hexdigest()
        large = {"sha256": digest, "oid": digest, "size": len(content), "pointerSize": 130}
        return described | {"oid": digest, "lfs": large}
    git = hashlib.sha1(b"blob %d\0" % len(content) + content)  # noqa: S324 - Git's own hash
    return described | {"oid": git.hexdigest(), "blobId": git.hexdigest()}


@contextmanager
def local_hub() -> Iterator[LocalHub]:
    """Run a hub and its storage on free ports of this machine."""
    hub = LocalHub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler)) for _ in range(2)
        ]
        for server in servers:
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
        hub.url, hub.storage_url = (f"http://127.0.0.1:{one.server_port}" for one in servers)
        yield hub
