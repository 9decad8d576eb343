"""Files that Sentence Transformers adds to a checkpoint, and the settings of a sparse encoder.

`modules.json` lists what follows the encoder. Most lists make dense vectors of sentences, which no
head of a checkpoint computes. SPLADE's pooling follows the masked-language-model head. A router has
one list for queries and one for documents. A masked-language model without such files has the
pooling of SPLADE v2 (maximum, one logarithm).

Shapes: V vocabulary.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from fillmask_model.checkpoints.checkpoint import Checkpoint
from fillmask_model.checkpoints.errors import CheckpointError, checkpoint_errors
from fillmask_model.checkpoints.tensor_files import SAFETENSORS, TensorFiles
from fillmask_model.encoder.sparse import (
    ACTIVATIONS,
    STRATEGIES,
    SparsePooling,
    SparseSettings,
)
from fillmask_model.files import atomic_replace, read_object, read_text

MODULES_FILE, ENCODER_FILE = "modules.json", "sentence_bert_config.json"
ROUTER_FILE = "router_config.json"
IDF_FILE, MAIN_FILE = "idf.json", "config_sentence_transformers.json"
_ENCODERS = ("Transformer", "MLMTransformer")
_POOLING, _STATIC, _ROUTER = "SpladePooling", "SparseStaticEmbedding", "Router"


@dataclass(frozen=True, slots=True)
class SparseModules:
    """Folders of the modules of a sparse encoder, relative to the checkpoint.

    Attributes:
        encoder: folder of the encoder, "" for the checkpoint itself.
        pooling: folder of the pooling's config.json.
        query_weights: folder with a weight per token for queries. None if the encoder reads them.
    """

    encoder: str
    pooling: str
    query_weights: str | None = None


def read_modules(directory: Path) -> SparseModules | None:
    """Return the modules of a sparse encoder.

    Returns:
        The modules, or None for a checkpoint without SPLADE's pooling.

    Raises:
        ValueError: a file is invalid, or lists a module that a bundle does not compute.
    """
    path = directory / MODULES_FILE
    if not path.is_file():
        return None
    listed = _read_list(path)
    if [name for name, _ in listed] == [_ROUTER]:
        return _read_router(directory / ROUTER_FILE)
    others = [name for name, _ in listed if name not in (*_ENCODERS, _POOLING)]
    if others or listed[0][0] not in _ENCODERS or len(listed) > 2:
        raise ValueError(
            f"{path} lists {', '.join(others) or 'other modules than an encoder and its pooling'} "
            "of Sentence Transformers, which fillmask does not compute; name a checkpoint that "
            "fills masks or labels texts, or remove the file to serve the checkpoint's own head"
        )
    encoder, *pooling = (folder for _, folder in listed)
    if encoder and not pooling:
        raise ValueError(f"{path} places the encoder in {encoder}; name this directory instead")
    return SparseModules(encoder, pooling[0]) if pooling else None


def write_sparse_modules(directory: Path) -> None:
    """Write the files that make a checkpoint a sparse encoder with SPLADE's pooling by maximum."""
    package = "sentence_transformers.sparse_encoder.models"
    folders = {"MLMTransformer": "", _POOLING: f"1_{_POOLING}"}
    modules = [
        {"idx": index, "name": str(index), "path": folder, "type": f"{package}.{name}"}
        for index, (name, folder) in enumerate(folders.items())
    ]
    pooling = {"pooling_strategy": STRATEGIES[0], "activation_function": ACTIVATIONS[0]}
    (directory / folders[_POOLING]).mkdir(exist_ok=True)
    for path, content in (
        (directory / folders[_POOLING] / "config.json", pooling),
        (directory / MODULES_FILE, modules),
    ):
        with atomic_replace(path) as temporary:
            temporary.write_text(json.dumps(content, indent=2) + "\n")


def _read_list(path: Path) -> list[tuple[str, str]]:
    try:
        modules = json.loads(read_text(path))
        listed = [(_class(module["type"]), _folder(module["path"])) for module in modules]
        listed[0]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        raise ValueError(f"{path} must be a list of modules with type and path") from None
    return listed


def _read_router(path: Path) -> SparseModules:
    fields = read_object(path)
    try:
        routes: dict[str, list[str]] = {
            route: [_folder(one) for one in fields["structure"][route]]
            for route in ("query", "document")
        }
        types = {folder: _class(name) for folder, name in fields["types"].items()}
        query, document = ([types[one] for one in routes[name]] for name in routes)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(f"{path} must have types, and structure with query and document") from None
    same = routes["query"] == routes["document"]
    if len(document) != 2 or document[0] not in _ENCODERS or document[1] != _POOLING:
        raise ValueError(
            f"{path}: documents must have an encoder and {_POOLING} (got {', '.join(document)})"
        )
    if not same and query != [_STATIC]:
        raise ValueError(
            f"{path}: queries must have the modules of documents or {_STATIC} (got "
            f"{', '.join(query)}); export each encoder with a modules.json of its own"
        )
    encoder, pooling = routes["document"]
    return SparseModules(encoder, pooling, None if same else routes["query"][0])


def _class(name: Any) -> str:
    return str(name).rpartition(".")[2]


def _folder(path: Any) -> str:
    """Return a folder below the checkpoint."""
    folder = Path(str(path))
    if folder.is_absolute() or ".." in folder.parts:
        raise ValueError
    return "" if folder == Path() else str(folder)


def read_max_length(path: Path) -> int | None:
    """Return the maximum length in tokens to which Sentence Transformers truncates, if any.

    Args:
        path: file with the settings of the encoder, which may be missing.

    Raises:
        ValueError: a setting is invalid or not supported.
    """
    if not path.is_file():
        return None
    settings = read_object(path)
    if settings.get("do_lower_case"):
        raise ValueError(
            f"{path}: do_lower_case must be false, because the tokenizer decides about case "
            "(got true); set it to false if the tokenizer has the field do_lower_case"
        )
    length = settings.get("max_seq_length")
    if length is not None and (type(length) is not int or length < 3):
        raise ValueError(f"{path}: max_seq_length must be a number from 3 (got {length!r})")
    return length


def with_sparse_settings(
    checkpoint: Checkpoint, directory: Path, modules: SparseModules | None
) -> Checkpoint:
    """Return a checkpoint whose only task is sparse vectors.

    Args:
        directory: directory of the modules' folders.
        modules: modules of Sentence Transformers. None for a plain masked-language model, which may
            have the weights of queries in idf.json.

    Raises:
        CheckpointError: the checkpoint has no trained masked-language-model head or no tokenizer,
            or a file is missing or invalid, or its setting is not supported.
    """
    checkpoint.require_head()
    if checkpoint.tokenizer_json is None:
        raise CheckpointError("the checkpoint has no tokenizer; add tokenizer.json")
    with checkpoint_errors(directory):
        tokenizer = Tokenizer.from_str(checkpoint.tokenizer_json.decode())
        vocab_size = checkpoint.model.config.vocab_size
        weights = _read_query_weights(directory, modules, tokenizer, vocab_size)
        if modules is None:
            settings = SparseSettings(SparsePooling(), None, weights)
        else:
            pooling = _read_pooling(directory / modules.pooling / "config.json")
            settings = SparseSettings(pooling, _read_dimensions(directory / MAIN_FILE), weights)
    return replace(checkpoint, sparse=settings)


def _read_query_weights(
    directory: Path, modules: SparseModules | None, tokenizer: Tokenizer, vocab_size: int
) -> list[float] | None:
    table = directory / IDF_FILE
    if modules is not None and modules.query_weights is not None:
        file = directory / modules.query_weights / SAFETENSORS
        weights = (
            _read_tensor(file, vocab_size)
            if file.is_file()
            else _read_table(table, tokenizer, vocab_size)
        )
    elif modules is None and table.is_file():
        weights = _read_table(table, tokenizer, vocab_size)
    else:
        return None
    for index in tokenizer.encode("").ids:  # around every query, and never a word of it
        weights[index] = 0.0
    return weights


def _read_pooling(path: Path) -> SparsePooling:
    fields = read_object(path)
    strategy = fields.get("pooling_strategy", STRATEGIES[0])
    activation = fields.get("activation_function", ACTIVATIONS[0])
    for name, value, allowed in (
        ("pooling_strategy", strategy, STRATEGIES),
        ("activation_function", activation, ACTIVATIONS),
    ):
        if value not in allowed:
            raise CheckpointError(
                f"{path}: {name} must be {' or '.join(allowed)} (got {value!r:.100})"
            )
    return SparsePooling(strategy, activation)


def _read_dimensions(path: Path) -> int | None:
    if not path.is_file():
        return None
    fields = read_object(path)
    prompts = fields.get("prompts") or {}
    if not isinstance(prompts, dict) or any(prompts.values()):
        raise CheckpointError(
            f"{path}: prompts must be empty, because a bundle adds no text to its inputs; add them "
            "to the texts that you send, and empty the field"
        )
    most = fields.get("max_active_dims")
    if most is not None and (type(most) is not int or most < 1):
        raise CheckpointError(
            f"{path}: max_active_dims must be null or a whole number of at least 1 (got "
            f"{most!r:.100})"
        )
    return most


def _read_tensor(path: Path, vocab_size: int) -> list[float]:
    """Read the tensor `weight` (V,), which may lack unused rows at the end of the table."""
    weight = TensorFiles(path.parent).get("weight")
    if weight is None or weight.dim() != 1 or len(weight) > vocab_size:
        shape = None if weight is None else tuple(weight.shape)
        raise CheckpointError(
            f"{path} must have the tensor weight of shape ({vocab_size},) (got {shape})"
        )
    weights: list[float] = weight.float().tolist()
    return _checked(weights + [0.0] * (vocab_size - len(weights)), path)


def _read_table(path: Path, tokenizer: Tokenizer, vocab_size: int) -> list[float]:
    fields: dict[str, Any] = read_object(path)
    weights = [0.0] * vocab_size
    for token, weight in fields.items():
        index = tokenizer.token_to_id(token)
        if index is None or index >= vocab_size:
            raise CheckpointError(f"{path} has {token!r:.100}, which is not a token of the model")
        weights[index] = weight
    return _checked(weights, path)


def _checked(weights: list[float], path: Path) -> list[float]:
    for weight in weights:
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 0 <= weight < math.inf:
            raise CheckpointError(
                f"{path}: a weight must be a number of at least 0 (got {weight!r:.100})"
            )
    return [float(weight) for weight in weights]
