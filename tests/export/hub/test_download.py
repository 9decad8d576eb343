"""Export of checkpoints from a local hub."""

from __future__ import annotations

import errno
import io
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
import transformers
from huggingface_hub import constants
from safetensors.torch import load_file, save_file

from fillmask.bundles.bundle import read_bundle
from fillmask_export.hub import download as hub_module
from fillmask_export.hub.download import download_checkpoint
from fillmask_export.hub.errors import HubError
from fillmask_export.progress import DownloadProgress
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from tests.export.hub.commands import NAME, download, export
from tests.export.hub.local_hub import ONE, OTHER, LocalHub, Repository
from tests.model.samples import assert_same_weights, change_config
from tests.running_server import running_server
from tests.service.server_process import start_process

ROOT = Path(__file__).parents[3]
NEEDED = {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}


def write_pickle(directory: Path) -> None:
    """Replace the safetensors file by a pickle file."""
    tensors = load_file(directory / "model.safetensors")
    (directory / "model.safetensors").unlink()
    torch.save(tensors, directory / "pytorch_model.bin")


def write_shards(directory: Path, *names: str) -> None:
    """Split the safetensors file into two files with an index."""
    tensors = load_file(directory / "model.safetensors")
    (directory / "model.safetensors").unlink()
    index: dict[str, str] = {}
    for part, name in enumerate(names):
        shard = {key: tensors[key] for key in sorted(tensors)[part::2]}
        save_file(shard, directory / name)
        index |= dict.fromkeys(shard, name)
    content = json.dumps({"weight_map": index})
    (directory / "model.safetensors.index.json").write_text(content)


def test_an_id_becomes_a_bundle(
    hub: LocalHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The bundle names the commit. The hub gets requests for needed files only.
    assert export(tmp_path, "--output", str(tmp_path / "bundle")) == 0
    bundle = read_bundle(tmp_path / "bundle")
    assert (bundle.name, bundle.description) == ("tiny-bert", f"{NAME} at commit {ONE}")
    printed = capsys.readouterr()
    assert f"checkpoint: {NAME} at commit {ONE}\n" in printed.out
    assert printed.out.endswith(f"to serve it, set FILLMASK_BUNDLE={tmp_path / 'bundle'}\n")
    assert "download of " in printed.err
    assert hub.files() == NEEDED
    assert {request.path.partition("/resolve/")[0] for request in hub.requests} == {
        f"/api/models/{NAME}/revision/main",
        f"/{NAME}",
    }


def test_the_requests_carry_no_telemetry(hub: LocalHub) -> None:
    download()
    for request in [*hub.requests, *hub.stored]:
        products = {part.partition("/")[0] for part in request.user_agent.split("; ")}
        assert products == {"unknown", "hf_hub", "python"}


def test_a_bundle_takes_the_name_of_the_model(hub: LocalHub, tmp_path: Path) -> None:
    bundles = ["--bundles", str(tmp_path / "bundles")]
    assert export(tmp_path, *bundles) == 0
    assert read_bundle(tmp_path / "bundles" / "tiny-bert").name == "tiny-bert"
    assert export(tmp_path, *bundles, checkpoint=str(tmp_path / "remote")) == 0
    assert read_bundle(tmp_path / "bundles" / "remote").description == ""
    (tmp_path / "latest").symlink_to("remote")
    assert export(tmp_path, *bundles, checkpoint=str(tmp_path / "latest")) == 0
    assert read_bundle(tmp_path / "bundles" / "latest").name == "latest"


def test_a_bundle_is_overwritten_only_on_request(
    hub: LocalHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without --overwrite, the export fails before the download.
    output = ["--output", str(tmp_path / "bundle")]
    assert export(tmp_path, *output, "--description", "first") == 0
    hub.requests.clear()
    assert export(tmp_path, *output, "--description", "second") == 2
    assert "add --overwrite to replace it" in capsys.readouterr().err
    assert hub.requests == []
    assert read_bundle(tmp_path / "bundle").description == "first"
    assert export(tmp_path, *output, "--description", "second", "--overwrite") == 0
    assert read_bundle(tmp_path / "bundle").description == "second"


def test_an_existing_directory_wins_over_the_hub(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny, NAME)
    assert export(tmp_path, "--output", "bundle") == 0
    assert hub.requests == []


@pytest.mark.parametrize(
    ("checkpoint", "options", "message"),
    [
        ("remote", ["--revision", "main"], "need the id of a repository (got the path"),
        ("remote", ["--allow-pickle"], "need the id of a repository (got the path"),
        (
            "bundle",
            ["--renew-golden", "--allow-pickle"],
            "need the id of a repository (got the path",
        ),
        ("some/where/else", [], "some/where/else does not exist; name the directory"),
        ("./" + NAME, [], "does not exist; name the directory of a checkpoint, or the id"),
        (
            "tiny-org/absent",
            [],
            "the directory tiny-org/absent does not exist, and {url} has no repository of this",
        ),
        ("absent", [], "the directory absent does not exist, and {url} has no repository of this"),
        (NAME, ["--revision", "v9"], f"{NAME} has no revision 'v9'; name a branch, a tag or"),
    ],
)
def test_errors_of_the_name(
    checkpoint: str,
    options: list[str],
    message: str,
    hub: LocalHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Each error is one line.
    monkeypatch.chdir(tmp_path)
    output = [] if "--renew-golden" in options else ["--output", "bundle"]
    assert export(tmp_path, *output, *options, checkpoint=checkpoint) == 2
    error = capsys.readouterr().err
    assert message.format(url=hub.url) in error
    assert error.count("\n") == 1
    assert not (tmp_path / "bundle").exists()


def test_a_revision_selects_a_commit(hub: LocalHub, directory: Path, tmp_path: Path) -> None:
    older = shutil.copytree(directory, tmp_path / "older")
    change_config(older, layer_norm_eps=1e-5)
    hub.repositories[NAME] = Repository({ONE: directory, OTHER: older}, {"main": ONE, "v1": OTHER})
    assert download().commit == ONE
    for revision in ("v1", OTHER):
        snapshot = download(revision=revision)
        assert snapshot.commit == OTHER
        assert load_checkpoint(snapshot.directory).model.config.norm_eps == 1e-5


def test_a_failed_update_does_not_select_the_older_commit(
    hub: LocalHub, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the offline mode selects it, even after a part of the update has arrived.
    first = download()
    hub.repositories[NAME] = Repository({OTHER: directory}, {"main": OTHER})
    for name in ("config.json", "model.safetensors"):
        hub.failing = {name}
        with pytest.raises(HubError, match=r"denies access .* \(status 403\)"):
            download()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert download() == first


def test_a_private_repository_needs_a_token(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    # Only the hub gets the token, not the storage to which it redirects.
    hub.repositories[NAME].token = "hf_secret"  # noqa: S105 - a token of the local hub
    with pytest.raises(HubError, match=r"set HF_TOKEN to a token with access to it"):
        download()
    assert {request.token for request in hub.requests} == {None}
    hub.requests.clear()
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert download().commit == ONE
    assert {request.token for request in hub.requests} == {"hf_secret"}
    assert [request.token for request in hub.stored] == [None]


def test_a_token_with_invisible_characters(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret\u200b")
    with pytest.raises(HubError, match=r"HF_TOKEN must have only ASCII characters"):
        download()


def test_a_gated_repository_names_its_page(hub: LocalHub) -> None:
    hub.repositories[NAME].gated = True
    with pytest.raises(HubError, match=f"accept its conditions on {hub.url}/{NAME}, then set"):
        download()


def test_pickle_files_only_on_request(hub: LocalHub, directory: Path) -> None:
    assert not load_checkpoint(download(allow_pickle=True).directory).head_is_new
    assert hub.files() == NEEDED  # safetensors files are preferred
    original = load_checkpoint(directory).model
    write_pickle(directory)
    hub.repositories[NAME] = Repository({OTHER: directory}, {"main": OTHER})
    with pytest.raises(HubError, match=r"only the pickle file pytorch_model.bin; add --allow-pi"):
        download()
    assert "pytorch_model.bin" not in hub.files()
    downloaded = load_checkpoint(download(allow_pickle=True).directory).model
    assert_same_weights(downloaded, original)
    (directory / "pytorch_model.bin").unlink()
    hub.repositories[NAME] = Repository({"3" * 40: directory}, {"main": "3" * 40})
    with pytest.raises(HubError, match=r"nor pytorch_model.bin \(got tf_model.h5\); load it with"):
        download(allow_pickle=True)


def test_shards_of_an_index(hub: LocalHub, directory: Path) -> None:
    original = load_checkpoint(directory).model
    names = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    write_shards(directory, *names)
    assert_same_weights(load_checkpoint(download().directory).model, original)
    index = "model.safetensors.index.json"
    assert hub.files() == (NEEDED - {"model.safetensors"}) | {index, *names}


def test_an_index_with_an_absent_file(hub: LocalHub, directory: Path) -> None:
    write_shards(directory, "one.safetensors", "two.safetensors")
    (directory / "two.safetensors").unlink()
    with pytest.raises(HubError, match=r"at main has no file two.safetensors; name another revis"):
        download()


def test_shards_may_not_hide_pickle_files(hub: LocalHub, directory: Path) -> None:
    write_shards(directory, "model-00001-of-00002.safetensors", "hidden.bin")
    with pytest.raises(HubError, match=r"must list only safetensors files \(got hidden.bin\)"):
        download()
    assert hub.stored == []


def test_the_vocabulary_of_an_older_tokenizer(hub: LocalHub, directory: Path) -> None:
    (directory / "tokenizer.json").unlink()
    download()
    assert hub.files() == (NEEDED - {"tokenizer.json"}) | {"vocab.txt"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, r"model_type must be one of albert, bert.* \(got 'gpt2'\)"),
        ({"architectures": ["BertForTokenClassification"]}, "architectures must name a class for"),
        ({"hidden_act": "mish"}, r"\(got 'mish'\)"),
    ],
)
def test_an_unsupported_model_fails_before_its_weights(
    changes: dict[str, Any], message: str, hub: LocalHub, directory: Path
) -> None:
    change_config(directory, **changes)
    with pytest.raises(CheckpointError, match=message):
        download()
    assert hub.files() == {"config.json"}


def test_a_repository_without_a_configuration(hub: LocalHub, directory: Path) -> None:
    (directory / "config.json").unlink()
    with pytest.raises(HubError, match=rf"{NAME} has no config.json; name a repository"):
        download()
    for name in ("model.safetensors", "pytorch_model.bin"):
        (directory / name).unlink()
    with pytest.raises(HubError, match=r"no config.json \(got tf_model.h5\); load it with"):
        download()


def test_offline_the_cache_suffices(
    hub: LocalHub, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = download()
    hub.requests.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert download() == download(revision=ONE) == first
    with pytest.raises(HubError, match=rf"no complete download of {NAME} at v2; unset HF_HUB_OFF"):
        download(revision="v2")
    for name in ("model.safetensors", "tokenizer.json"):
        (first.directory / name).rename(first.directory / "renamed")
        with pytest.raises(HubError, match=r"no complete download of .* at main; unset HF_HUB_OF"):
            download()
        (first.directory / "renamed").rename(first.directory / name)
    assert hub.requests == []


def test_a_second_download_requests_no_known_file(hub: LocalHub) -> None:
    download()
    hub.requests.clear()
    hub.stored.clear()
    stream = io.StringIO()
    download_checkpoint(NAME, None, stream)
    assert (hub.files(), hub.stored, stream.getvalue()) == ({"config.json"}, [], "")


def test_huggingface_hub_shows_no_bar(
    hub: LocalHub,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TQDM_POSITION", "-1")  # shows its bars also without a terminal
    write_shards(directory, "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    download()
    assert capsys.readouterr().err == ""


def test_errors_of_the_network(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
    with pytest.raises(HubError, match=rf"127.0.0.1:{port} is not reachable \(.*; check the net"):
        download()
    for address in ("hub.example", "http://[::1"):
        monkeypatch.setattr(constants, "ENDPOINT", address)
        with pytest.raises(HubError, match=r"HF_ENDPOINT"):
            download()
    monkeypatch.setattr(constants, "ENDPOINT", f"http://me:secret@127.0.0.1:{port}")
    with pytest.raises(HubError, match=rf"and http://127.0.0.1:{port} is not reachable") as caught:
        download()
    assert "secret" not in str(caught.value)
    monkeypatch.setattr(constants, "ENDPOINT", f"{hub.url}/{NAME}/resolve/main/README.md?")
    with pytest.raises(HubError, match=r"does not answer like a hub; correct HF_ENDPOINT"):
        download()


def test_errors_of_the_disk(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
        with pytest.raises(HubError, match=r"needs \d+ MB of free space \(got 0 MB\); free some"):
            download()
    assert hub.stored == []

    def fail(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(hub_module, "hf_hub_download", fail)
    with pytest.raises(HubError, match=r"is not writable \(No space left on device\); free some"):
        download()


def test_an_interrupted_download_continues(
    hub: LocalHub, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The progress counts no byte twice.
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    counts: list[float] = []
    monkeypatch.setattr(DownloadProgress, "add", lambda _, count: counts.append(count))
    hub.cut_bytes = 2500
    snapshot = download()
    assert len(hub.stored) == 2
    content = (directory / "model.safetensors").read_bytes()
    assert (snapshot.directory / "model.safetensors").read_bytes() == content
    needed = [directory / name for name in NEEDED - {"config.json"}]
    assert sum(counts) == sum(file.stat().st_size for file in needed)


def make_export() -> list[str]:
    """Return the command of `make export`, without its environment."""
    made = [f"--old-file=.venv-export/{name}" for name in (".installed", ".native")]
    make = ["make", "--dry-run", *made, "export"]
    variables = [f"MODEL={NAME}", "PRECISION=fp32"]
    printed = subprocess.run(
        [*make, *variables], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    program, *arguments = shlex.split(printed)
    assert program == ".venv-export/bin/fillmask-export"
    return [sys.executable, "-m", "fillmask_export", *arguments]


@pytest.mark.slow  # five processes; the tests above export in this one
@pytest.mark.processes
def test_two_commands_from_an_id_to_an_answer(
    hub: LocalHub, directory: Path, tmp_path: Path
) -> None:
    # A killed export leaves no bundle. The environment of the processes names the hub.
    command = make_export()
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("FILLMASK_", "HF_"))}
    variables = inherited | {"HF_HOME": str(tmp_path / "home")}
    options: dict[str, Any] = {"cwd": tmp_path, "env": variables | {"HF_ENDPOINT": hub.url}}
    hub.stalls = True
    with subprocess.Popen(command, **options) as process:
        deadline_s = time.monotonic() + 60
        while not hub.stored and time.monotonic() < deadline_s:
            time.sleep(0.02)
        process.kill()
    assert hub.stored
    assert not (tmp_path / "bundles").exists()
    hub.stalls = False
    subprocess.run(command, check=True, **options)
    assert all(r.path.startswith(("/api/models/", f"/{NAME}/")) for r in hub.requests)
    assert read_bundle(tmp_path / "bundles" / "tiny-bert").description == f"{NAME} at commit {ONE}"
    text, target = "The [MASK] is today.", "capital"
    environment = variables | {"FILLMASK_BUNDLE": "bundles/tiny-bert"}
    with running_server(cwd=tmp_path, env=environment) as server:
        body = {"inputs": text, "parameters": {"targets": [target]}}
        [fill] = httpx.post(f"{server.url}/fill-mask", json=body).json()
    pipeline = transformers.pipeline("fill-mask", model=str(directory), device="cpu")
    [expected] = pipeline(text, targets=[target])
    assert fill["token_str"] == target
    assert fill["score"] == pytest.approx(expected["score"], abs=1e-4)


def test_the_cache_needs_one_export(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "bundles"))
    bundle = tmp_path / "bundles" / "fillmask" / NAME.replace("/", "--")
    assert export(tmp_path, "--cache", "--description", "first") == 0
    hub.requests.clear()
    assert export(tmp_path, "--cache", "--description", "first") == 0
    assert hub.requests == []
    assert export(tmp_path, "--cache", "--description", "second") == 0
    assert read_bundle(bundle).description == "second"


@pytest.mark.slow  # two services and their exports; tests/service/bundles/test_cache.py has one
@pytest.mark.processes
def test_one_command_from_an_id_to_answers(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "huggingface"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "bundles"))
    answers = []
    for _ in range(2):
        with start_process("--checkpoint", NAME) as (_, url):
            body = {"inputs": "the [MASK] of the sea"}
            answers.append(httpx.post(f"{url}/fill-mask", json=body).raise_for_status().json())
        assert hub.files() == (set() if len(answers) == 2 else NEEDED)
        hub.requests.clear()
        hub.stored.clear()
    assert answers[0] == answers[1]
    assert len(answers[0]) == 5
