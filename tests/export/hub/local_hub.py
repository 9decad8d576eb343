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
    """Received request.

    Attributes:
        path: path without the query.
    """

    method: str
    path: str
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

    def commit_of(self, revision: str) -> str | None:
        return revision if revision in self.commits else self.refs.get(revision)


@dataclass
class LocalHub:
    """Running hub.

    Attributes:
        url: base URL without a final slash.
        repositories: repository by id.
        requests: received requests.
        stored: received requests for large files, at the storage.
        cut_bytes: number of bytes after which the storage closes the connection of the next
            response. None for a complete response.
        stalls: whether the storage sends no response, until the end of the hub.
        failing: names of files to which the hub responds with status 403.
        tamper: function that changes the body and the headers of the hub's answer to a path.
    """

    url: str = ""
    storage_url: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    stored: list[Request] = field(default_factory=list)
    cut_bytes: int | None = None
    stalls: bool = False
    failing: set[str] = field(default_factory=set)
    tamper: Callable[[str, bytes, dict[str, Any]], bytes] = lambda _, body, __: body
    ended: threading.Event = field(default_factory=threading.Event)

    def files(self) -> set[str]:
        """Return the names of the files that clients have requested."""
        paths = [request.path for request in self.requests]
        return {path.rpartition("/")[2] for path in paths if "/resolve/" in path}


class _Handler(BaseHTTPRequestHandler):
    hub: LocalHub
    received: list[Request]

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        agent = self.headers.get("User-Agent", "")
        request = Request(self.command, path, token, agent)
        self.received.append(request)
        self.respond(request)

    def respond(self, request: Request) -> None:
        raise NotImplementedError

    def send(self, status: int, body: bytes = b"", **headers: Any) -> None:
        body = self.hub.tamper(self.path, body, headers)
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class _HubHandler(_Handler):
    def respond(self, request: Request) -> None:
        path, token = request.path, request.token
        info = re.fullmatch(r"/api/models/(.+?)(?:/(?:revision|tree)/(.+))?", path)
        file = re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path)
        found = info or file
        if found is None:
            return self.send(404)
        name, revision = found[1], found[2] or "main"
        repository = self.hub.repositories.get(name)
        if repository is None or repository.token not in {None, token}:
            return self.send(401, X_Error_Code="RepoNotFound")
        commit = repository.commit_of(revision)
        if commit is None:
            return self.send(404, X_Error_Code="RevisionNotFound")
        directory = repository.commits[commit]
        if file is None:
            return self._describe(name, commit, directory, as_tree="/tree/" in path)
        if repository.gated and token is None:
            return self.send(401, X_Error_Code="GatedRepo")
        return self._send_file(directory / file[3], commit)

    def _describe(self, name: str, commit: str, directory: Path, *, as_tree: bool) -> None:
        paths = sorted(path for path in directory.rglob("*") if path.is_file())
        files = [_description(path, str(path.relative_to(directory))) for path in paths]
        answer: Any = {"id": name, "sha": commit, "siblings": files}
        if as_tree:
            answer = [{"type": "file", "path": one["rfilename"], **one} for one in files]
        self.send(200, json.dumps(answer).encode(), Content_Type="application/json")

    def _send_file(self, file: Path, commit: str) -> None:
        if file.name in self.hub.failing:
            return self.send(403)
        if not file.is_file():
            return self.send(404, X_Error_Code="EntryNotFound", X_Repo_Commit=commit)
        content = file.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        common: dict[str, Any] = {"X_Repo_Commit": commit, "ETag": f'"{digest}"'}
        if file.suffix not in _LARGE:
            return self.send(200, content, **common)
        return self.send(
            302,
            X_Linked_Size=len(content),
            X_Linked_Etag=f'"{digest}"',
            Location=f"{self.hub.storage_url}{file}",
            **common,
        )


def _description(file: Path, name: str) -> dict[str, Any]:
    """Return what a hub says of a file: the hash of Git's object, or of the content if large."""
    content = file.read_bytes()
    described = {"rfilename": name, "size": len(content)}
    if file.suffix in _LARGE:
        digest = hashlib.sha256(content).hexdigest()
        large = {"sha256": digest, "oid": digest, "size": len(content), "pointerSize": 130}
        return described | {"oid": digest, "lfs": large}
    git = hashlib.sha1(b"blob %d\0" % len(content) + content)  # noqa: S324 - Git's own hash
    return described | {"oid": git.hexdigest(), "blobId": git.hexdigest()}


class _StorageHandler(_Handler):
    def respond(self, request: Request) -> None:
        if self.hub.stalls:
            self.hub.ended.wait()
            return
        content = Path(request.path).read_bytes()
        first = int(re.sub(r"\D", "", self.headers.get("Range", "0")))
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - first))
        self.end_headers()
        last, self.hub.cut_bytes = self.hub.cut_bytes, None
        self.wfile.write(content[first:last])


@contextmanager
def local_hub() -> Iterator[LocalHub]:
    """Run a hub and its storage on free ports of this machine."""
    hub = LocalHub()
    with ExitStack() as stack:
        urls = []
        for base, received in ((_HubHandler, hub.requests), (_StorageHandler, hub.stored)):
            handler = type("Handler", (base,), {"hub": hub, "received": received})
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            urls.append(f"http://127.0.0.1:{server.server_port}")
        stack.callback(hub.ended.set)
        hub.url, hub.storage_url = urls
        yield hub
