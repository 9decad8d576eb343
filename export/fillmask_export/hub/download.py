"""Download of a checkpoint from Hugging Face's hub or from another hub with the same protocol.

huggingface_hub takes the address of the hub, the token and the directory of the cache from its own
environment variables, such as HF_ENDPOINT, HF_TOKEN and HF_HOME. The download contains only files
that the reader of checkpoints opens.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import httpx2
from huggingface_hub import HfApi, constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.utils import logging as hub_logging
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # a lazy import
from tqdm import tqdm

from fillmask_export.hub.errors import HubError, hub_address, readable_errors
from fillmask_export.hub.files import (
    MODEL_CONFIG,
    list_shards,
    select_tokenizer_files,
    select_weights,
    sparse_files,
)
from fillmask_export.hub.session import check_content, is_commit, limit_answers
from fillmask_export.progress import DownloadProgress
from fillmask_model.checkpoints.checkpoint import check_config
from fillmask_model.checkpoints.modules import (
    ENCODER_FILE,
    MODULES_FILE,
    ROUTER_FILE,
    read_max_length,
    read_modules,
)
from fillmask_model.checkpoints.tensor_files import INDEX_SUFFIX, advise_on_form

# Without this setting the requests of huggingface_hub name the version of torch and the coding
# assistant that runs the command. huggingface_hub also requests a list of assistants from the hub.
constants.HF_HUB_DISABLE_TELEMETRY = True

_TIMEOUT_S = 10.0  # timeout of huggingface_hub for other requests


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Checkpoint in the cache of huggingface_hub.

    Attributes:
        directory: directory with files of one commit.
        commit: full hash of the commit.
    """

    directory: Path
    commit: str


def is_repository_id(text: str) -> bool:
    """Return whether a text has the form of an id, such as "google-bert/bert-base-uncased"."""
    try:
        validate_repo_id(text)
    except HFValidationError:
        return False
    return True


def download_checkpoint(
    repository: str, revision: str | None, stream: TextIO, *, allow_pickle: bool = False
) -> Snapshot:
    """Download the files of a checkpoint that the cache lacks.

    The configuration comes first, so that an unsupported checkpoint costs little time. If
    HF_HUB_OFFLINE is set, only files in the cache are available.

    Args:
        repository: id of the repository.
        revision: branch, tag or commit. None for the branch main.
        stream: stream of the progress.
        allow_pickle: whether to download pickle files from a repository without safetensors files.

    Raises:
        CheckpointError: config.json is invalid or its values are not supported.
        HubError: the hub, the repository, the revision or a file is not available, or the cache is
            not writable.
    """
    if hub_logging.get_verbosity() == logging.WARNING:  # the default, which breaks the progress bar
        hub_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # untyped function
    revision = revision or constants.DEFAULT_REVISION
    with readable_errors(repository, revision):
        offline = constants.is_offline_mode()
        # the name of a branch may lead to the cached file of an older commit
        commit, sizes, digests = (
            (revision, {}, {}) if offline else _list_files(repository, revision)
        )
        limit_answers(max(sizes.values(), default=0))
        marker = MODULES_FILE if MODULES_FILE in sizes else MODEL_CONFIG
        if offline and try_to_load_from_cache(repository, MODEL_CONFIG, revision=commit) is None:
            marker = MODULES_FILE  # the encoder is in a folder
        directory = _fetch(repository, commit, marker, digests).parent
        snapshot = Snapshot(directory, commit=directory.name)
        if offline:
            files = (one.relative_to(directory) for one in directory.rglob("*") if one.is_file())
            sizes = dict.fromkeys(map(Path.as_posix, files), 0)

        def fetch_listed(*names: str) -> None:
            for name in names:
                if name in sizes:
                    _fetch(repository, snapshot.commit, name, digests)

        fetch_listed(ROUTER_FILE)
        modules = read_modules(directory)
        prefix = f"{modules.encoder}/" if modules is not None and modules.encoder else ""
        fetch_listed(prefix + MODEL_CONFIG, prefix + ENCODER_FILE, *sparse_files(modules, sizes))
        check_config(directory / prefix, repository)
        read_max_length(directory / prefix / ENCODER_FILE)
        inner = {
            name.removeprefix(prefix): size
            for name, size in sizes.items()
            if name.startswith(prefix)
        }
        weights = select_weights(repository, inner, allow_pickle=allow_pickle)
        needed = [*select_tokenizer_files(inner), weights]
        if weights.endswith(INDEX_SUFFIX):
            fetch_listed(prefix + weights)
            needed += list_shards(repository, directory / prefix, allow_pickle=allow_pickle)
        needed = [prefix + name for name in needed]
        missing = [name for name in needed if not (directory / name).exists()]
        total_bytes = sum(sizes.get(name, 0) for name in missing)
        _check_free_space(directory, total_bytes)
        with closing(DownloadProgress(stream, total_bytes)) as progress:
            progress.add(0)
            for name in missing:
                _fetch(repository, snapshot.commit, name, digests, progress.add)
        # stores the commit of the branch in the cache, from which an offline export takes it
        _fetch(repository, revision, marker, {})
    return snapshot


def _fetch(
    repository: str,
    revision: str,
    name: str,
    digests: Mapping[str, str],
    count: Callable[[float], None] = lambda _: None,
) -> Path:
    """Download a file that the cache lacks, and return its path in the cache.

    Args:
        digests: hashes of the files by name.
        count: function that receives the number of received bytes.
    """
    received = 0.0

    def add(size: float) -> None:
        nonlocal received
        received += size
        count(size)

    path = Path(hf_hub_download(repository, name, revision=revision, tqdm_class=_byte_counter(add)))
    if received:
        check_content(path, digests.get(name, ""))
    return path


def _list_files(repository: str, revision: str) -> tuple[str, dict[str, int], dict[str, str]]:
    """Return the commit of a revision, and the sizes in bytes and hashes of its files by name.

    Unknown sizes are 0, and unknown hashes are absent.
    """
    limit_answers(0)
    try:
        info = HfApi().model_info(
            repository, revision=revision, files_metadata=True, timeout=_TIMEOUT_S
        )
    except HfHubHTTPError:
        raise
    except UnicodeEncodeError:
        raise HubError("HF_TOKEN must have only ASCII characters; copy the token again") from None
    except (ValueError, KeyError, TypeError, httpx2.InvalidURL):
        raise HubError(
            f"{hub_address()} does not answer like a hub; correct HF_ENDPOINT or the proxy"
        ) from None
    sizes = {sibling.rfilename: sibling.size or 0 for sibling in info.siblings or ()}
    if MODEL_CONFIG not in sizes and MODULES_FILE not in sizes:
        advice = "; name a repository with a checkpoint in the format of transformers"
        raise HubError(f"{repository} has no {MODEL_CONFIG}{advise_on_form(sizes) or advice}")
    commit = info.sha or revision
    if info.sha is not None and not is_commit(info.sha):
        raise HubError(
            f"{hub_address()} must send the hash of a commit (got {info.sha[:100]!r}); correct "
            "HF_ENDPOINT or the proxy"
        )
    digests = {
        sibling.rfilename: sibling.lfs.sha256 if sibling.lfs else sibling.blob_id or ""
        for sibling in info.siblings or ()
    }
    return commit, sizes, digests


def _check_free_space(directory: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(directory).free
    if free_bytes < needed_bytes:
        raise HubError(
            f"the cache {constants.HF_HUB_CACHE} needs {needed_bytes / 1e6:.0f} MB of free space "
            f"(got {free_bytes / 1e6:.0f} MB); free some space, or set HF_HOME to another directory"
        )


def _byte_counter(count: Callable[[float], None]) -> type[tqdm[Any]]:
    """Return a replacement of huggingface_hub's progress bar that only counts received bytes."""

    class Counter(tqdm):  # type: ignore[type-arg]  # at run time tqdm takes no type arguments
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options | {"disable": True})

        def update(self, n: float | None = 1) -> None:
            count(n or 0)

        def update_transfer(self, n: float | None = 1) -> None:
            """Ignore the bytes from the network, which `update` counts as bytes of the file."""

        def set_transfer_postfix_str(self, *_: Any, **__: Any) -> None:
            """Ignore the speed."""

    return Counter
