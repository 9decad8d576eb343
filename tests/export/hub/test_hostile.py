"""Checkpoints and hubs that mean harm: each ends with one sentence, soon, and in little memory."""

from __future__ import annotations

import json
import os
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from fillmask_export.commands import main
from fillmask_export.hub.errors import HubError
from tests.export.hub.commands import NAME, download
from tests.export.hub.local_hub import LocalHub
from tests.model.samples import VERSES, change_config

pytestmark = pytest.mark.processes

MAX_S, MAX_BYTES = 20.0, 7 * 10**8  # beyond the memory of this process, which the child shares
Change = Callable[[Path], object]


def config(**values: Any) -> Change:
    return lambda path: change_config(path, **values)


def content(name: str, data: bytes) -> Change:
    return lambda path: (path / name).write_bytes(data)


def pipe(name: str) -> Change:
    def change(path: Path) -> None:
        (path / name).unlink()
        os.mkfifo(path / name)

    return change


def sparse(name: str) -> Change:
    """Return a function that makes a file of 100 GB, of which the disk stores nothing."""
    return lambda path: os.truncate(path / name, 10**11)


def tokenizer(**values: Any) -> Change:
    def change(path: Path) -> None:
        fields = json.loads((path / "tokenizer.json").read_text(encoding="utf-8")) | values
        (path / "tokenizer.json").write_text(json.dumps(fields), encoding="utf-8")

    return change


def pickled(write: Callable[[Path, dict[str, Tensor]], object]) -> Change:
    """Return a function that replaces the weights by a pytorch_model.bin."""

    def change(path: Path) -> None:
        weights = load_file(path / "model.safetensors")
        (path / "model.safetensors").unlink()
        write(path / "pytorch_model.bin", weights)

    return change


def compressed(path: Path, _: dict[str, Tensor]) -> None:
    """Write a zip file of 400 kB that takes 100 MB in memory."""
    stored = path.with_suffix(".stored")
    torch.save({"bert.embeddings.word_embeddings.weight": torch.zeros(4)}, stored)
    with (
        zipfile.ZipFile(stored) as file,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as bomb,
    ):
        for name in file.namelist():
            with bomb.open(name, "w", force_zip64=True) as entry:
                entry.write(file.read(name))
                if "/data/" in name:
                    for _part in range(10):
                        entry.write(bytes(10**7))
    stored.unlink()


def many_tensors(path: Path) -> None:
    weights = {f"x{number}\n\x1b[2J": torch.zeros(1) for number in range(2_000)}
    save_file(weights, path / "model.safetensors")


_MULTIPLIED = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}
_SLOW = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
_NESTED = b'{"a":' + b"[" * 10**6
CHECKPOINTS: dict[str, Change] = {
    "a pipe for a configuration": pipe("config.json"),
    "a configuration of 100 GB": sparse("config.json"),
    "a deep tokenizer": content("tokenizer.json", _NESTED),
    "a number of a million digits": content("config.json", b'{"a":' + b"1" * 10**6 + b"}"),
    "10^9 layers": config(num_hidden_layers=10**9),
    "all sizes at their limits": config(
        hidden_size=2**24, vocab_size=2**24, intermediate_size=2**24, num_attention_heads=1
    ),
    "a family with an escape": config(model_type="bert\n\x1b[2J"),
    "2,000 tensors with escapes": many_tensors,
    "a header of 2^60 bytes": content("model.safetensors", (2**60).to_bytes(8, "little")),
    "a pipe for weights": pipe("model.safetensors"),
    "10^12 copies of a letter": tokenizer(
        normalizer={"type": "Sequence", "normalizers": [_MULTIPLIED] * 6}
    ),
    "an expression without an end": tokenizer(pre_tokenizer=_SLOW),
    "a broken table of characters": tokenizer(
        normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA/////w=="}
    ),
}


@pytest.mark.parametrize("change", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_a_hostile_checkpoint_ends_with_a_sentence(
    change: Change,
    directory: Path,
    tmp_path: Path,
) -> None:
    change(directory)
    ends_with_a_sentence(tmp_path, str(directory))


def test_a_compressed_file_of_weights_is_not_opened(directory: Path, tmp_path: Path) -> None:
    pickled(compressed)(directory)
    assert "must not be compressed" in ends_with_a_sentence(tmp_path, str(directory))


def ends_with_a_sentence(scratch: Path, checkpoint: str) -> str:
    """Export a checkpoint in a process of its own and return its only line of errors."""
    texts = scratch / "texts.txt"
    texts.write_text("\n".join(VERSES))
    before = sorted(scratch.rglob("*"))
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    shared = pages * os.sysconf("SC_PAGE_SIZE")
    started = time.monotonic()
    child = os.fork()
    if not child:  # a process of its own has memory of its own
        code = 99
        try:
            output = ["--output", str(scratch / "bundle"), "--texts", str(texts)]
            with (scratch / "stderr").open("w") as stderr:
                os.dup2(stderr.fileno(), 2)
                sys.stderr = stderr
                code = main([checkpoint, *output])
        finally:
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    progress = "download of "
    printed = (scratch / "stderr").read_text().splitlines()
    lines = [line for line in printed if not line.startswith(progress)]
    assert (os.waitstatus_to_exitcode(status), len(lines)) == (2, 1), lines[-5:]
    assert lines[0].isprintable()
    assert len(lines[0]) < 5_000
    assert time.monotonic() - started < MAX_S
    assert usage.ru_maxrss * 1024 < shared + MAX_BYTES
    cache = scratch / "cache"
    new = {path for path in scratch.rglob("*") if cache not in path.parents} - set(before)
    assert new <= {cache, scratch / "stderr"}
    return lines[0]


def headers(**values: str) -> Callable[[str, bytes, dict[str, Any]], bytes]:
    """Return a function that replaces headers of the answers with a file."""

    def tamper(path: str, body: bytes, sent: dict[str, Any]) -> bytes:
        if "/resolve/" in path:
            sent |= {name.replace("_", "-"): value for name, value in values.items()}
        return body

    return tamper


def listing(change: Callable[[dict[str, Any]], object]) -> Callable[..., bytes]:
    """Return a function that changes the list of the files."""

    def tamper(path: str, body: bytes, _: dict[str, Any]) -> bytes:
        if not path.startswith("/api/"):
            return body
        fields = json.loads(body)
        change(fields)
        return json.dumps(fields).encode()

    return tamper


def squeezed(path: str, body: bytes, sent: dict[str, Any]) -> bytes:
    """Answer with 5 MB that take a gigabyte in memory, and no correct sum at their end."""
    if not path.startswith("/api/"):
        return body
    sent["Content-Encoding"] = "gzip"
    packer = zlib.compressobj(1, wbits=31)
    head, part = (
        packer.compress(bytes(size)) + packer.flush(zlib.Z_FULL_FLUSH) for size in (0, 10**7)
    )
    return head + part * 100 + packer.flush()


def other_weights(path: str, body: bytes, _: dict[str, Any]) -> bytes:
    if path.endswith("tokenizer.json"):
        return body.replace(b"the", b"teh")
    return body


HUBS: dict[str, tuple[Callable[..., bytes], str]] = {
    "an ETag that is a path": (headers(ETag='"/evil/x"'), "must send a hash as etag"),
    "an ETag outside": (headers(ETag='"../../../../evil"'), "must send a hash as etag"),
    "a linked ETag that is a path": (
        headers(X_Linked_Etag='"/evil/x"', ETag='"a"'),
        "must send a hash as x-linked-etag",
    ),
    "an ETag with an escape": (headers(ETag='"\x1b[2J"'), "must send a hash as etag"),
    "a commit outside": (
        headers(X_Repo_Commit="../../../evil"),
        "must send a hash as x-repo-commit",
    ),
    "a listed commit outside": (
        listing(lambda f: f.update(sha="../../../evil")),
        "must send the hash of a commit",
    ),
    "a list that is none": (
        listing(lambda f: f.update(siblings=5)),
        "does not answer like a hub",
    ),
    "a list of 40 MB": (
        listing(lambda f: f.update(pad="x" * 40 * 2**20)),
        "does not answer like a hub",
    ),
    "a compressed list": (squeezed, "does not answer like a hub"),
    "other content than listed": (other_weights, "tokenizer.json must have the hash"),
}


@pytest.mark.parametrize(("tamper", "sentence"), HUBS.values(), ids=HUBS)
def test_a_hostile_hub_ends_with_a_sentence(
    tamper: Callable[..., bytes], sentence: str, hub: LocalHub, tmp_path: Path
) -> None:
    hub.tamper = tamper
    assert sentence in ends_with_a_sentence(tmp_path, NAME)
    assert not [path for path in tmp_path.rglob("*") if "evil" in path.name]


def test_content_that_is_not_listed_does_not_stay_in_the_cache(
    hub: LocalHub, directory: Path
) -> None:
    honest, hub.tamper = hub.tamper, other_weights
    with pytest.raises(HubError, match=r"tokenizer.json must have the hash .*; run the command ag"):
        download()
    hub.tamper = honest
    content = (directory / "tokenizer.json").read_bytes()
    assert (download().directory / "tokenizer.json").read_bytes() == content
