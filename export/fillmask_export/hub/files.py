"""Files of a repository that the reader of checkpoints opens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from huggingface_hub import constants
from huggingface_hub.errors import LocalEntryNotFoundError

from fillmask_export.hub.errors import HubError
from fillmask_model.checkpoints.modules import SparseModules
from fillmask_model.checkpoints.sparse import IDF_FILE, MAIN_FILE
from fillmask_model.checkpoints.tensor_files import (
    INDEX_SUFFIX,
    PICKLED,
    SAFETENSORS,
    advise_on_form,
    find_weight_files,
)
from fillmask_model.tokenizers.loading import SETTINGS_FILES, TOKENIZER_FILE, VOCABULARY_FILES

MODEL_CONFIG = "config.json"


def sparse_files(modules: SparseModules | None, names: Mapping[str, int]) -> list[str]:
    """Return the files with the settings of sparse vectors and with weights of queries."""
    if modules is None:
        return [IDF_FILE]
    settings = [MAIN_FILE, f"{modules.pooling}/{MODEL_CONFIG}"]
    if modules.query_weights is None:
        return settings
    weights = f"{modules.query_weights}/{SAFETENSORS}"
    return [*settings, weights if weights in names else IDF_FILE]


def select_weights(repository: str, names: Mapping[str, int], *, allow_pickle: bool) -> str:
    """Return the file of weights that the reader prefers, or its index."""
    for name in (SAFETENSORS, PICKLED):
        for file in (name, f"{name}{INDEX_SUFFIX}"):
            if file not in names:
                continue
            if name == PICKLED and not allow_pickle:
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


def select_tokenizer_files(names: Mapping[str, int]) -> list[str]:
    """Return the files of the tokenizer, without the files that tokenizer.json replaces."""
    vocabulary = [TOKENIZER_FILE] if TOKENIZER_FILE in names else VOCABULARY_FILES
    if constants.is_offline_mode() and not any(name in names for name in vocabulary):
        raise LocalEntryNotFoundError(TOKENIZER_FILE)
    return [name for name in (*SETTINGS_FILES, *vocabulary) if name in names]


def list_shards(repository: str, directory: Path, *, allow_pickle: bool) -> list[str]:
    """Return the names of the weight files in the index."""
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
