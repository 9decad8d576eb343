"""bundle.json, in a directory with files of the recorded hashes."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from fillmask.bundles.bundle import FILES, Bundle, default_bundle_path, read_bundle
from fillmask.bundles.description import Description
from fillmask.bundles.validation import MAX_NAME_CHARS
from fillmask.errors import BundleError, StartupError
from fillmask.models.limits import limits_of
from fillmask.settings import Settings
from tests.fuzzing.target import FindingError, Target, check_message, memory_directory

_CONTENT = b"fuzzing"
_HASH = hashlib.sha256(_CONTENT).hexdigest()
_RECORD = {"sha256": _HASH, "bytes": len(_CONTENT)}


class BundleDescription(Target):
    """The description of a bundle.

    The seeds record the hashes of the files in the directory, so that most mutants pass the
    comparison of the hashes.
    """

    more_words = (*Description.model_fields, "sparse", "regression", "mean", "int8")

    def __init__(self) -> None:
        self._path = memory_directory()
        for name in FILES:
            (self._path / name).write_bytes(_CONTENT)
        self._settings = Settings()

    def seeds(self) -> Iterator[bytes]:
        fields = json.loads((default_bundle_path() / "bundle.json").read_bytes())
        fields["files"] = dict.fromkeys(FILES, _RECORD)
        fields["golden"]["prompts"] = fields["golden"]["prompts"][:1]
        yield json.dumps(fields).encode()
        fields["schema_version"] = 3
        yield json.dumps(_with_labels(fields, ["fill-mask", "text-classification"])).encode()
        fields["golden"] = {"prompts": []}
        yield json.dumps(_with_labels(fields, ["text-classification"])).encode()

    def check(self, data: bytes) -> None:
        (self._path / "bundle.json").write_bytes(data)
        # a message may show a value whole, but must not multiply it
        most = 1_000 + 12 * len(data)
        try:
            bundle = read_bundle(self._path)
        except BundleError as error:
            check_message(str(error), most)
            return
        self._check_bundle(bundle, json.loads(data))
        for figures in (bundle.int8_figures, bundle.label_int8_figures):
            try:
                figures()
            except BundleError as error:
                check_message(str(error), most)
        try:
            limits_of(self._settings, bundle)
        except StartupError as error:
            check_message(str(error), most)

    def _check_bundle(self, bundle: Bundle, fields: dict[str, Any]) -> None:
        """Check that the bundle has the values of the file, and a name for a line of output."""
        bundle.model_dump_json(by_alias=True)  # as in GET /info
        read = bundle.model_dump(by_alias=True, exclude_unset=True)
        if not _same(read, fields):
            raise FindingError(f"the bundle differs from the file: {read!r}")
        if not bundle.name.isprintable() or len(bundle.name) > MAX_NAME_CHARS:
            raise FindingError(f"the name is {bundle.name!r}")
        if max(bundle.special_token_ids) >= bundle.architecture.vocab_size:
            raise FindingError("a special token is outside the vocabulary")


def _same(read: Any, given: Any) -> bool:
    """Return whether a value of the bundle is that of the file."""
    if isinstance(read, dict):
        return read.keys() == given.keys() and all(_same(read[name], given[name]) for name in read)
    if isinstance(read, list | tuple):
        return len(read) == len(given) and all(map(_same, read, given))
    return bool(read == (float(given) if isinstance(read, float) else given))


def _with_labels(fields: dict[str, Any], tasks: list[str]) -> dict[str, Any]:
    golden = fields["golden"] | {
        "logit_tolerance": 0.1,
        "labels": [{"text": "a", "text_pair": "b", "logits": [0.5, -0.25]}],
    }
    return fields | {
        "tasks": tasks,
        "pairs": True,
        "token_types": 2,
        "classification": {
            "labels": ["no", "yes"],
            "problem_type": "single_label_classification",
            "pooling": "first",
        },
        "verification": {
            "labels": {"int8": {"mean_logit_difference": 0.1, "p99_logit_difference": 0.2}}
        },
        "golden": golden,
    }


TARGET = BundleDescription
