"""Download of checkpoints from a local hub."""

from __future__ import annotations

import argparse
import errno
import io
import json
import shlex
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file

from fillmask.bundles.bundle import read_bundle
from fillmask_export.arguments import export_parser
from fillmask_export.hub import download as hub_module
from fillmask_export.hub import session
from fillmask_export.hub.download import download_checkpoint
from fillmask_export.hub.errors import HubError
from fillmask_export.source import Source, load_source
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.checkpoints.errors import CheckpointError
from tests.export.hub.commands import NAME, download, export
from tests.export.hub.local_hub import ONE, OTHER, LocalHub, Repository
from tests.model.samples import assert_same_weights, change_config
from tests.service.server_process import start_process

ROOT = Path(__file__).parents[3]
WEIGHTS, INDEX, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
NEEDED = {"config.json", "tokenizer.json", "tokenizer_config.json", WEIGHTS}
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
STATIC, POOLING = "query_0_SparseStaticEmbedding", "document_1_SpladePooling"
Change = Callable[[LocalHub, Path], object]


def write_shards(directory: Path, *names: str) -> None:
    """Split the safetensors file into two files with an index."""
    tensors = load_file(directory / WEIGHTS)
    (directory / WEIGHTS).unlink()
    index: dict[str, str] = {}
    for part, name in enumerate(names):
        shard = {key: tensors[key] for key in sorted(tensors)[part::2]}
        save_file(shard, directory / name)
        index |= dict.fromkeys(shard, name)
    (directory / INDEX).write_text(json.dumps({"weight_map": index}))


def remove(*names: str) -> Change:
    def change(_: LocalHub, path: Path) -> None:
        for name in names:
            (path / name).unlink()

    return change


def private(hub: LocalHub, _: Path) -> None:
    hub.repositories[NAME].token = "hf_secret"  # noqa: S105 - a token of the local hub


def gated(hub: LocalHub, _: Path) -> None:
    hub.repositories[NAME].gated = True


def half_of_the_shards(_: LocalHub, path: Path) -> None:
    write_shards(path, *SHARDS)
    (path / SHARDS[1]).unlink()


def test_an_id_becomes_a_bundle(
    hub: LocalHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The bundle names the commit. Of the hub's files only the needed ones are requested, without
    # telemetry, and a second export to the cache of bundles requests nothing.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "bundles"))
    assert export(tmp_path, "--cache") == 0
    bundle = read_bundle(tmp_path / "bundles" / "fillmask" / NAME.replace("/", "--"))
    assert (bundle.name, bundle.description) == ("tiny-bert", f"{NAME} at commit {ONE}")
    printed = capsys.readouterr()
    assert f"checkpoint: {NAME} at commit {ONE}\n" in printed.out
    assert printed.err.startswith("download of 0.2 MB\n")
    assert "Fetching" not in printed.err
    assert hub.files() == NEEDED
    asked = {request.path.partition("/resolve/")[0] for request in hub.requests}
    listed = {f"/api/models/{NAME}/revision/main", f"/api/models/{NAME}/tree/{ONE}"}
    assert asked == {f"/{NAME}", *listed}
    for request in [*hub.requests, *hub.stored]:
        products = {part.partition("/")[0] for part in request.user_agent.split("; ")}
        assert products == {"unknown", "hf_hub", "python"}
    hub.requests.clear()
    assert export(tmp_path, "--cache") == 0
    assert hub.requests == []


def test_an_existing_directory_wins_over_the_hub(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: Path
) -> None:
    # The bundle has the name of the link. Without --overwrite, the next export ends before its
    # download.
    monkeypatch.chdir(tmp_path)
    Path(NAME).parent.mkdir()
    Path(NAME).symlink_to(tiny)
    assert export(tmp_path, "--bundles", "bundles") == 0
    bundle = read_bundle(tmp_path / "bundles" / "tiny-bert")
    assert (bundle.name, bundle.description) == ("tiny-bert", "")
    Path(NAME).unlink()
    assert export(tmp_path, "--bundles", "bundles") == 2
    assert hub.requests == []


@pytest.mark.parametrize(
    ("checkpoint", "options", "message"),
    [
        ("remote", ["--revision", "main"], "need the id of a repository (got the path"),
        ("remote", ["--fuse", "--allow-pickle"], "need the id of a repository (got the"),
        ("some/where/else", [], "some/where/else does not exist; name the directory"),
        ("./" + NAME, [], "does not exist; name the directory of a checkpoint, or the id"),
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
    monkeypatch.chdir(tmp_path)
    output = [] if "--fuse" in options else ["--output", "bundle"]
    assert export(tmp_path, *output, *options, checkpoint=checkpoint) == 2
    error = capsys.readouterr().err
    assert message.format(url=hub.url) in error
    assert error.count("\n") == 1
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize(
    ("change", "message", "requested"),
    [
        (private, "set HF_TOKEN to a token with access to it", set()),
        (gated, f"accept its conditions on {{url}}/{NAME}, then set", {"config.json"}),
        (remove("config.json"), rf"{NAME} has no config.json; name a repository", set()),
        (
            remove("config.json", WEIGHTS, PICKLED),
            r"no config.json \(got tf_model.h5\); load it with",
            set(),
        ),
        (
            remove(WEIGHTS),
            r"only the pickle file pytorch_model.bin; add --allow-pickle",
            {"config.json"},
        ),
        (
            remove(WEIGHTS, PICKLED),
            r"nor pytorch_model.bin \(got tf_model.h5\); load it with",
            {"config.json"},
        ),
        (
            half_of_the_shards,
            rf"at main has no file {SHARDS[1]}; name another revision",
            {*NEEDED - {WEIGHTS}, INDEX, SHARDS[0]},
        ),
        (
            lambda _, path: write_shards(path, SHARDS[0], "hidden.bin"),
            r"must list only safetensors files \(got hidden.bin\)",
            {"config.json", INDEX},
        ),
        (
            lambda hub, _: hub.failing.add(WEIGHTS),
            r"denies access .* \(status 403\)",
            NEEDED,
        ),
    ],
)
def test_errors_of_the_repository(
    change: Change, message: str, requested: set[str], hub: LocalHub, directory: Path
) -> None:
    change(hub, directory)
    with pytest.raises(HubError, match=message.format(url=hub.url)):
        download()
    assert hub.files() <= requested  # an error ends parallel downloads


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, r"model_type must be one of albert, bert.* \(got 'gpt2'\)"),
        ({"architectures": ["BertForQuestionAnswering"]}, "architectures must name a class for"),
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


def test_a_revision_selects_a_commit(hub: LocalHub, directory: Path, tmp_path: Path) -> None:
    older = shutil.copytree(directory, tmp_path / "older")
    change_config(older, layer_norm_eps=1e-5)
    hub.repositories[NAME] = Repository({ONE: directory, OTHER: older}, {"main": ONE, "v1": OTHER})
    assert download().commit == ONE
    for revision in ("v1", OTHER):
        snapshot = download(revision=revision)
        assert snapshot.commit == OTHER
        assert load_checkpoint(snapshot.directory).model.config.norm_eps == 1e-5


def test_only_the_hub_gets_the_token(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    # The storage to which it redirects gets none.
    private(hub, Path())
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert download().commit == ONE
    assert {request.token for request in hub.requests} == {"hf_secret"}
    assert [request.token for request in hub.stored] == [None]
    monkeypatch.setenv("HF_TOKEN", "hf_secret\u200b")
    with pytest.raises(HubError, match=r"HF_TOKEN must have only ASCII characters"):
        download()


def test_every_form_of_weights_and_tokenizers(hub: LocalHub, directory: Path) -> None:
    # Pickle files come only where nothing else is. An older tokenizer has only a vocabulary.
    original = load_checkpoint(directory).model
    write_shards(directory, *SHARDS)
    assert_same_weights(load_checkpoint(download(allow_pickle=True).directory).model, original)
    assert hub.files() == {*NEEDED - {WEIGHTS}, INDEX, *SHARDS}
    (directory / INDEX).unlink()
    tensors = load_file(directory / SHARDS[0]) | load_file(directory / SHARDS[1])
    torch.save(tensors, directory / PICKLED)
    hub.repositories[NAME] = Repository({OTHER: directory}, {"main": OTHER})
    assert_same_weights(load_checkpoint(download(allow_pickle=True).directory).model, original)
    (directory / "tokenizer.json").unlink()
    hub.repositories[NAME] = Repository({ONE[1:] + "3": directory}, {"main": ONE[1:] + "3"})
    hub.requests.clear()
    download(allow_pickle=True)
    assert hub.files() == {"config.json", "vocab.txt", "tokenizer_config.json", PICKLED}


def write_router(directory: Path, encoder: str) -> None:
    """Turn a checkpoint into a sparse encoder with weights of queries."""
    classes = {STATIC: "SparseStaticEmbedding", encoder: "MLMTransformer", POOLING: "SpladePooling"}
    router = {
        "types": {folder: f"x.{name}.{name}" for folder, name in classes.items()},
        "structure": {"query": [STATIC], "document": [encoder, POOLING]},
    }
    for name, content in {
        "modules.json": [{"path": "", "type": "sentence_transformers.models.Router"}],
        "router_config.json": router,
        f"{POOLING}/config.json": {"activation_function": "log1p_relu"},
        "config_sentence_transformers.json": {"max_active_dims": 40},
        f"{STATIC}/config.json": {"frozen": True},
    }.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(json.dumps(content))
    words = len(json.loads((directory / "tokenizer.json").read_text())["model"]["vocab"])
    save_file({"weight": torch.ones(words)}, directory / STATIC / WEIGHTS)
    if encoder:
        (directory / encoder).mkdir()
        for file in NEEDED:
            shutil.move(directory / file, directory / encoder / file)


@pytest.mark.parametrize("encoder", ["", "document_0_MLMTransformer"])
def test_a_sparse_encoder_in_the_root_or_in_a_folder(
    encoder: str, hub: LocalHub, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_router(directory, encoder)
    snapshot = download()
    assert not hub.files() & {"vocab.txt", "tf_model.h5", "README.md"}
    for task, sparse in ((None, True), ("sparse", True), ("fill-mask", False)):
        options = argparse.Namespace(checkpoint=NAME, task=task)
        found = load_source(options, Source(snapshot.directory, NAME)).sparse
        assert (found is not None) is sparse
        if found is not None:
            assert (found.pooling.activation, found.max_active_dims) == ("log1p_relu", 40)
            assert found.query_weights is not None
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert download() == snapshot


def test_files_of_a_sparse_encoder(hub: LocalHub, directory: Path) -> None:
    # A plain checkpoint may have a table. Modules that make dense vectors end before the weights.
    (directory / "idf.json").write_text("{}")
    download()
    assert "idf.json" in hub.files()
    modules = [{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}]
    (directory / "modules.json").write_text(json.dumps(modules))
    hub.repositories[NAME] = Repository({OTHER: directory}, {"main": OTHER})
    hub.requests.clear()
    with pytest.raises(ValueError, match="lists Pooling of Sentence Transformers"):
        download()
    assert WEIGHTS not in hub.files()


def test_offline_the_last_complete_download_suffices(
    hub: LocalHub, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A failed update does not select the older commit, but offline that is the complete one.
    first = download()
    hub.requests.clear()
    stream = io.StringIO()
    download_checkpoint(NAME, None, stream)
    assert (hub.files(), stream.getvalue()) == ({"config.json"}, "")
    hub.repositories[NAME] = Repository({OTHER: directory}, {"main": OTHER})
    for name in ("config.json", WEIGHTS):
        hub.failing = {name}
        with pytest.raises(HubError, match=r"denies access .* \(status 403\)"):
            download()
    hub.requests.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert download() == download(revision=ONE) == first
    with pytest.raises(HubError, match=rf"no complete download of {NAME} at v2; unset HF_HUB_OFF"):
        download(revision="v2")
    for name in (WEIGHTS, "tokenizer.json", "config.json"):
        (first.directory / name).rename(first.directory / "renamed")
        with pytest.raises(HubError, match=r"no complete download of .* at main; unset HF_HUB_OF"):
            download()
        (first.directory / "renamed").rename(first.directory / name)
    assert hub.requests == []


def test_errors_of_the_network(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for address, message in (
        (f"http://127.0.0.1:{port}", rf"127.0.0.1:{port} is not reachable \(.*; check the net"),
        ("hub.example", "HF_ENDPOINT"),
        ("http://[::1", "HF_ENDPOINT"),
        (f"http://me:secret@127.0.0.1:{port}", rf"and http://127.0.0.1:{port} is not reachable"),
        (f"{hub.url}/{NAME}/resolve/main/README.md?", "does not answer like a hub; correct HF_END"),
    ):
        monkeypatch.setattr(constants, "ENDPOINT", address)
        with pytest.raises(HubError, match=message) as caught:
            download()
        assert "secret" not in str(caught.value)


def test_errors_of_the_disk(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
        with pytest.raises(HubError, match=r"needs \d+ MB of free space \(got 0 MB\); free some"):
            download()
    assert hub.stored == []

    def fail(*_: object, **__: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(hub_module, "snapshot_download", fail)
    with pytest.raises(HubError, match=r"is not writable \(No space left on device\); free some"):
        download()


def test_an_interrupted_download_continues(
    hub: LocalHub, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The limit for lists of files is not one for the weights.
    monkeypatch.setattr(session, "MAX_ANSWER_BYTES", 5000)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda _: None)
    hub.cut_bytes = 2500
    snapshot = download()
    assert len(hub.stored) == 2
    assert (snapshot.directory / WEIGHTS).read_bytes() == (directory / WEIGHTS).read_bytes()


@pytest.mark.processes
def test_make_export_runs_the_command() -> None:
    made = [f"--old-file=.venv-export/{name}" for name in (".installed", ".native")]
    make = ["make", "--dry-run", *made, "export", f"MODEL={NAME}", "PRECISION=fp32"]
    printed = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    program, *arguments = shlex.split(printed)
    assert program == ".venv-export/bin/fillmask-export"
    options = export_parser().parse_args(arguments)
    found = options.checkpoint, options.bundles, options.precision
    assert found == (NAME, Path("bundles"), "fp32")


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
