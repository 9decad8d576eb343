"""Reading of bundles and verification of their files by size and SHA-256."""

import hashlib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import PrivateAttr

from fillmask.bundles.description import (
    DESCRIPTION_FILE,
    FILES,
    FUSED_FILE,
    MODEL_FILE,
    SCHEMA_VERSION,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    Architecture,
    Description,
    FileRecord,
    FileRecords,
    Int8Figures,
    LabelInt8Figures,
    TokenInt8Figures,
    VectorInt8Figures,
)
from fillmask.bundles.validation import read_model, refuse
from fillmask.errors import BundleError, FillMaskError
from fillmask.regular_files import open_regular_file, read_regular_file
from fillmask.strict_json import parse_json

__all__ = [
    "DESCRIPTION_FILE",
    "FILES",
    "FUSED_FILE",
    "MODEL_FILE",
    "SCHEMA_VERSION",
    "TOKENIZER_FILE",
    "WEIGHTS_FILE",
    "Architecture",
    "Bundle",
    "default_bundle_path",
    "read_bundle",
]

# Size limits in bytes of the files. The built-in bundle.json has 27 KB, the largest known graph
# 150 KB, the largest known tokenizer 20 MB. The weights of XLM-RoBERTa XXL have 43 GB.
MAX_BYTES = {
    DESCRIPTION_FILE: 2**24,
    MODEL_FILE: 2**26,
    FUSED_FILE: 2**26,
    WEIGHTS_FILE: 2**36,
    TOKENIZER_FILE: 2**28,
}

_COPY_AGAIN = "copy or export the bundle again"
_Figures = TypeVar("_Figures", LabelInt8Figures, TokenInt8Figures, VectorInt8Figures)


class Bundle(Description):
    """A verified bundle, with its description and its directory."""

    _path: Path = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        self._path = context

    @property
    def path(self) -> Path:
        return self._path

    @property
    def model_path(self) -> Path:
        return self.path / MODEL_FILE

    @property
    def fused_path(self) -> Path:
        return self.path / FUSED_FILE

    @property
    def tokenizer_path(self) -> Path:
        return self.path / TOKENIZER_FILE

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Labels of texts or of tokens, None for a model without them."""
        head = self.classification or self.token_classification
        return None if head is None else tuple(head.labels)

    def read_tokenizer(self) -> bytes:
        """Return the content of the tokenizer's file, or raise an OSError."""
        return read_regular_file(self.tokenizer_path, MAX_BYTES[TOKENIZER_FILE])

    def int8_figures(self) -> Int8Figures | None:
        """Return the differences between int8 and fp32, None for fp32 and without figures.

        Raises:
            BundleError: a figure is missing or not a number.
        """
        if self.precision != "int8" or "int8" not in self.verification:
            return None
        return read_model(Int8Figures, self.verification["int8"], where=("verification", "int8"))

    def label_int8_figures(self) -> LabelInt8Figures:
        """Return the differences of the logits of an int8 model, or raise a BundleError."""
        return self._figures(LabelInt8Figures, "labels")

    def vector_int8_figures(self) -> VectorInt8Figures:
        """Return the differences of the weights of an int8 model, or raise a BundleError."""
        return self._figures(VectorInt8Figures, "vectors")

    def token_int8_figures(self) -> TokenInt8Figures:
        """Return the differences of the labels of tokens in int8, or raise a BundleError."""
        return self._figures(TokenInt8Figures, "token_labels")

    def _figures(self, model: type[_Figures], head: str) -> _Figures:
        found = self.verification.get(head)
        figures = found.get("int8") if isinstance(found, dict) else None
        return read_model(model, figures, where=("verification", head, "int8"))


def default_bundle_path() -> Path:
    return Path(__file__).parent / "default"


def read_bundle(path: Path) -> Bundle:
    """Read bundle.json and verify the size and SHA-256 of each file.

    Raises:
        BundleError: a file is missing, too large, outside of the directory or different from its
            record, or bundle.json is invalid.
    """
    if not path.is_dir():
        refuse(f"{path} is not a directory; set bundle to the directory of a bundle")
    bundle = read_model(Bundle, _read_json(_inside(path, DESCRIPTION_FILE)), context=path)
    for field, file in FileRecords.model_fields.items():
        recorded: FileRecord | None = getattr(bundle.files, field)
        if recorded is not None:
            _verify_file(path, str(file.alias), recorded)
    return bundle


def _verify_file(path: Path, name: str, recorded: FileRecord) -> None:
    file = _inside(path, name)
    actual_bytes = file.stat().st_size
    if actual_bytes != recorded.bytes:
        refuse(f"{name} must have {recorded.bytes} bytes (got {actual_bytes}); {_COPY_AGAIN}")
    with open_regular_file(file) as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != recorded.sha256.lower():
            refuse(f"the SHA-256 of {name} differs from the SHA-256 in bundle.json; {_COPY_AGAIN}")


def _inside(path: Path, name: str) -> Path:
    """Return the path of a file, which must be inside the directory of the bundle."""
    file = path / name
    if not file.is_file():
        if file.exists():
            refuse(f"{name} in {path} must be a regular file; {_COPY_AGAIN}")
        refuse(f"{name} is missing from {path}; {_COPY_AGAIN}")
    most, actual_bytes = MAX_BYTES[name], file.stat().st_size
    if actual_bytes > most:
        refuse(f"{name} must have at most {most} bytes (got {actual_bytes}); {_COPY_AGAIN}")
    if not file.resolve().is_relative_to(path.resolve()):
        refuse(f"{name} is a link to a file outside of {path}; copy the file into the bundle")
    return file


def _read_json(file: Path) -> object:
    content = read_regular_file(file, MAX_BYTES[file.name])
    try:
        return parse_json(content, file.name)
    except FillMaskError as error:
        reason, _, _advice = error.text.rpartition(";")
        raise BundleError(f"The bundle is invalid: {reason}; {_COPY_AGAIN}.") from error
