"""Files that Sentence Transformers adds to a checkpoint.

`modules.json` lists what follows the encoder. Most lists make dense vectors of sentences, which no
head of a checkpoint computes. SPLADE's pooling follows the masked-language-model head. A router has
one list for queries and one for documents.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fillmask_model.encoder.sparse import ACTIVATIONS, STRATEGIES
from fillmask_model.files import atomic_replace, read_object, read_text

MODULES_FILE, ENCODER_FILE = "modules.json", "sentence_bert_config.json"
ROUTER_FILE = "router_config.json"
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
