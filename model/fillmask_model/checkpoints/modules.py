"""Check of the files that Sentence Transformers adds to a checkpoint.

`modules.json` lists what follows the encoder. Most lists make sentence vectors, which no head of a
checkpoint computes. SPLADE's pooling follows the masked-language-model head, which is served.
"""

from __future__ import annotations

import json
from pathlib import Path

from fillmask_model.files import read_object, read_text

MODULES_FILE, ENCODER_FILE = "modules.json", "sentence_bert_config.json"
_SUPPORTED = ("Transformer", "MLMTransformer", "SpladePooling")


def check_modules(directory: Path) -> None:
    """Check that a directory lists no module that a bundle does not compute.

    Raises:
        ValueError: a file is invalid, or lists such a module.
    """
    path = directory / MODULES_FILE
    if not path.is_file():
        return
    try:
        modules = json.loads(read_text(path))
        names = [str(module["type"]).rpartition(".")[2] for module in modules]
        first = str(modules[0]["path"])
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        raise ValueError(f"{path} must be a list of modules with type and path") from None
    if others := [name for name in names if name not in _SUPPORTED]:
        raise ValueError(
            f"{path} lists {', '.join(others)} of Sentence Transformers, which fillmask does not "
            "compute; name a checkpoint that fills masks or labels texts, or remove the file to "
            "serve the checkpoint's own head"
        )
    if first:
        raise ValueError(f"{path} places the encoder in {first}; name this directory instead")
    _check_encoder_file(directory / ENCODER_FILE)


def _check_encoder_file(path: Path) -> None:
    if not path.is_file():
        return
    settings = read_object(path)
    if settings.get("do_lower_case"):
        raise ValueError(
            f"{path}: do_lower_case must be false, because the tokenizer decides about case "
            "(got true); set it to false if the tokenizer has the field do_lower_case"
        )
