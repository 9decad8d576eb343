"""Download of a checkpoint from Hugging Face's hub or from another hub with the same protocol.

huggingface_hub takes the address of the hub, the token and the directory of the cache from its own
environment variables, such as HF_ENDPOINT, HF_TOKEN and HF_HOME. The download contains only files
that the reader of checkpoints opens.
"""

from __future__ import annotations

import glob
import logging
import shutil
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from huggingface_hub import constants, hf_hub_download, snapshot_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
from huggingface_hub.utils import logging as hub_logging
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # a lazy import
from tqdm import tqdm

from fillmask_export.hub.errors import HubError, absent_file, readable_errors
from fillmask_export.hub.files import (
    MODEL_CONFIG,
    list_files,
    list_shards,
    select_tokenizer_files,
    select_weights,
    sparse_files,
)
from fillmask_export.hub.session import check_content, limit_answers
from fillmask_model.checkpoints.checkpoint import check_config
from fillmask_model.checkpoints.sentence_transformers import (
    ENCODER_FILE,
    MODULES_FILE,
    ROUTER_FILE,
    read_max_length,
    read_modules,
)
from fillmask_model.checkpoints.tensor_files import INDEX_SUFFIX

# Without this setting the requests of huggingface_hub name the version of torch and the coding
# assistant that runs the command. huggingface_hub also requests a list of assistants from the hub.
constants.HF_HUB_DISABLE_TELEMETRY = True

_NO_BAR = partial(tqdm, disable=True)


class Snapshot(NamedTuple):
    """Directory in the cache of huggingface_hub, with files of one commit."""

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
        commit, files = (revision, {}) if offline else list_files(repository, revision)
        limit_answers(max((one.size or 0 for one in files.values()), default=0))

        def fetch(*names: str, bar: Any = _NO_BAR) -> Path:
            directory = Path(
                snapshot_download(
                    repository,
                    revision=commit,
                    allow_patterns=[*map(glob.escape, names)],
                    tqdm_class=bar,
                )
            )
            for name in files.keys() & names:
                check_content(directory / name, files[name])
            return directory

        directory = fetch(MODULES_FILE, ROUTER_FILE, MODEL_CONFIG)
        sizes = {name: one.size or 0 for name, one in files.items()} or {
            file.relative_to(directory).as_posix(): 0 for file in directory.rglob("*")
        }
        modules = read_modules(directory)
        prefix = f"{modules.encoder}/" if modules is not None and modules.encoder else ""
        if offline and prefix + MODEL_CONFIG not in sizes:
            raise LocalEntryNotFoundError(MODEL_CONFIG)
        fetch(prefix + MODEL_CONFIG, prefix + ENCODER_FILE, *sparse_files(modules, sizes))
        check_config(directory / prefix, repository)
        read_max_length(directory / prefix / ENCODER_FILE)
        inner = [name.removeprefix(prefix) for name in sizes if name.startswith(prefix)]
        weights = select_weights(repository, inner, allow_pickle=allow_pickle)
        needed = [*select_tokenizer_files(inner), weights]
        if weights.endswith(INDEX_SUFFIX):
            fetch(prefix + weights)
            needed += list_shards(repository, directory / prefix, allow_pickle=allow_pickle)
        missing = [prefix + name for name in needed if not (directory / prefix / name).exists()]
        total_bytes = sum(sizes.get(name, 0) for name in missing)
        _check_free_space(directory, total_bytes)
        if total_bytes:
            print(f"download of {total_bytes / 1e6:.1f} MB", file=stream, flush=True)
        fetch(*missing, bar=partial(tqdm, file=stream, disable=not stream.isatty()))
        for name in missing:
            if not (directory / name).exists():
                raise HubError(absent_file(repository, revision, name))
        # stores the commit of the branch in the cache, from which an offline export takes it
        marker = MODULES_FILE if MODULES_FILE in sizes else MODEL_CONFIG
        hf_hub_download(repository, marker, revision=revision)
    return Snapshot(directory, directory.name)


def _check_free_space(directory: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(directory).free
    if free_bytes < needed_bytes:
        raise HubError(
            f"the cache {constants.HF_HUB_CACHE} needs {needed_bytes / 1e6:.0f} MB of free space "
            f"(got {free_bytes / 1e6:.0f} MB); free some space, or set HF_HOME to another directory"
        )
