"""Bundle: reading, and verification of its files by size and SHA-256."""

import hashlib
import json
from pathlib import Path
from typing import Any, NoReturn

from pydantic import PrivateAttr

from service.bundles.description import (
    DESCRIPTION_FILE,
    FILES,
    MODEL_FILE,
    SCHEMA_VERSION,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    Architecture,
    Description,
    FileRecord,
    Golden,
    GoldenFill,
    GoldenPrompt,
    Int8Figures,
    read_model,
    refuse,
)
from service.errors import BundleError

__all__ = [
    "DESCRIPTION_FILE",
    "FILES",
    "MODEL_FILE",
    "SCHEMA_VERSION",
    "TOKENIZER_FILE",
    "WEIGHTS_FILE",
    "Architecture",
    "Bundle",
    "Golden",
    "GoldenFill",
    "GoldenPrompt",
    "default_bundle_path",
    "read_bundle",
]

# what is read into memory whole: the largest known have 3 KB, 150 KB and 20 MB
MAX_BYTES = {DESCRIPTION_FILE: 2**24, MODEL_FILE: 2**26, TOKENIZER_FILE: 2**28}


class Bundle(Description):
    """Verified bundle: its description and its directory."""

    _path: Path = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        """Keep the directory, which validation passes as its context."""
        self._path = context

    @property
    def path(self) -> Path:
        """The directory."""
        return self._path

    @property
    def model_path(self) -> Path:
        """The served graph."""
        return self.path / MODEL_FILE

    @property
    def tokenizer_path(self) -> Path:
        """The tokenizer, in Hugging Face's format."""
        return self.path / TOKENIZER_FILE

    def int8_figures(self) -> Int8Figures | None:
        """Return the verification figures of int8; None for fp32 and for early bundles in int8.

        Raises:
            BundleError: the figures are not numbers.
        """
        if self.precision != "int8" or "int8" not in self.verification:
            return None
        return read_model(Int8Figures, self.verification["int8"], where=("verification", "int8"))


def default_bundle_path() -> Path:
    """The directory of the built-in model."""
    return Path(__file__).parent / "default"


def read_bundle(path: Path) -> Bundle:
    """Read bundle.json and verify the size and SHA-256 of every file it names.

    Raises:
        BundleError: anything is missing, unknown, of the wrong type or not as recorded.
    """
    if not path.is_dir():
        refuse(f"{path} is not a directory")
    bundle = read_model(Bundle, _read_json(_inside(path, DESCRIPTION_FILE)), context=path)
    _verify_file(path, MODEL_FILE, bundle.files.model)
    _verify_file(path, WEIGHTS_FILE, bundle.files.weights)
    _verify_file(path, TOKENIZER_FILE, bundle.files.tokenizer)
    return bundle


def _verify_file(path: Path, name: str, recorded: FileRecord) -> None:
    file = _inside(path, name)
    actual_bytes = file.stat().st_size
    if actual_bytes != recorded.bytes:
        refuse(f"{name} has {actual_bytes} bytes, and bundle.json says {recorded.bytes}")
    with file.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != recorded.sha256.lower():
            refuse(f"{name} is not the file bundle.json describes: its SHA-256 differs")


def _inside(path: Path, name: str) -> Path:
    """Return the bundle's file of this name, which must be inside the directory."""
    file = path / name
    if not file.is_file():
        refuse(f"{name} is missing from {path}")
    most = MAX_BYTES.get(name)
    if most is not None and file.stat().st_size > most:
        refuse(f"{name} has {file.stat().st_size} bytes; at most {most} are allowed")
    if not file.resolve().is_relative_to(path.resolve()):
        refuse(f"{name} is a link to a file outside of the bundle")
    return file


def _read_json(file: Path) -> object:
    try:
        return json.loads(file.read_bytes(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"The bundle is refused: {file.name} is not valid JSON.") from error


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)
