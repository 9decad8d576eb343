"""Files of a repository, and which of them the reader of checkpoints opens."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from huggingface_hub.hf_api import RepoSibling

from fillmask_export.hub.errors import HubError, hub_address
from fillmask_export.hub.session import is_commit, limit_answers
from fillmask_model.checkpoints.sentence_transformers import (
    IDF_FILE,
    MAIN_FILE,
    MODULES_FILE,
    SparseModules,
)
from fillmask_model.checkpoints.tensor_files import (
    PICKLED,
    SAFETENSORS,
    advise_on_form,
    find_weight_files,
    preferred_weights,
)
from fillmask_model.tokenizers.loading import SETTINGS_FILES, TOKENIZER_FILE, VOCABULARY_FILES

MODEL_CONFIG = "config.json"
_TIMEOUT_S = 10.0  # timeout of huggingface_hub for other requests


def list_files(repository: str, revision: str) -> tuple[str, dict[str, RepoSibling]]:
    """Return the commit of a revision, and what the hub says of its files by name."""
    limit_answers(0)
    try:
        info = HfApi().model_info(
            repository, revision=revision, files_metadata=True, timeout=_TIMEOUT_S
        )
        files = {one.rfilename: one for one in info.siblings or ()}
    except HfHubHTTPError:
        raise
    except UnicodeEncodeError:
        raise HubError("HF_TOKEN must have only ASCII characters; copy the token again") from None
    except (ValueError, KeyError, TypeError, httpx2.InvalidURL):
        raise HubError(
            f"{hub_address()} does not answer like a hub; correct HF_ENDPOINT or the proxy"
        ) from None
    if MODEL_CONFIG not in files and MODULES_FILE not in files:
        advice = "; name a repository with a checkpoint in the format of transformers"
        raise HubError(f"{repository} has no {MODEL_CONFIG}{advise_on_form(files) or advice}")
    if info.sha is not None and not is_commit(info.sha):
        raise HubError(
            f"{hub_address()} must send the hash of a commit (got {info.sha[:100]!r}); correct "
            "HF_ENDPOINT or the proxy"
        )
    return info.sha or revision, files


def sparse_files(modules: SparseModules | None, names: Collection[str]) -> list[str]:
    """Return the files with the settings of sparse vectors and with weights of queries."""
    if modules is None:
        return [IDF_FILE]
    settings = [MAIN_FILE, f"{modules.pooling}/{MODEL_CONFIG}"]
    if modules.query_weights is None:
        return settings
    weights = f"{modules.query_weights}/{SAFETENSORS}"
    return [*settings, weights if weights in names else IDF_FILE]


def select_weights(repository: str, names: Collection[str], *, allow_pickle: bool) -> str:
    """Return the file of weights that the reader prefers, or its index."""
    file = preferred_weights(names)
    if file is not None:
        if file.startswith(PICKLED) and not allow_pickle:
            raise HubError(
                f"{repository} has no safetensors file, only the pickle file {file}; add "
                "--allow-pickle to use it. The export executes no code in it"
            )
        return file
    if constants.is_offline_mode():
        raise LocalEntryNotFoundError(SAFETENSORS)
    raise HubError(
        f"{repository} has neither {SAFETENSORS} nor {PICKLED}"
        f"{advise_on_form(names) or '; name a repository with weights of PyTorch'}"
    )


def select_tokenizer_files(names: Collection[str]) -> list[str]:
    """Return the files of the tokenizer, without the files that tokenizer.json replaces."""
    vocabulary = [TOKENIZER_FILE] if TOKENIZER_FILE in names else VOCABULARY_FILES
    if constants.is_offline_mode() and not any(name in names for name in vocabulary):
        raise LocalEntryNotFoundError(TOKENIZER_FILE)
    return [name for name in (*SETTINGS_FILES, *vocabulary) if name in names]


def list_shards(repository: str, directory: Path, *, allow_pickle: bool) -> list[str]:
    try:
        names = [path.name for path in find_weight_files(directory)[0]]
    except ValueError as error:
        raise HubError(str(error)) from None
    pickled = [name for name in names if not name.endswith(".safetensors")]
    if pickled and not allow_pickle:
        raise HubError(
            f"the index of {repository} must list only safetensors files (got {pickled[0]}); add "
            "--allow-pickle to use it. The export executes no code in it"
        )
    return names
