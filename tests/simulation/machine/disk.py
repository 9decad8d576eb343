"""Bundles on the disk of the simulation. Their files are read once; what differs is a version."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal
from unittest.mock import patch

from fillmask.bundles.bundle import WEIGHTS_FILE, Bundle, read_bundle
from fillmask.bundles.description import Classification, Task
from fillmask.bundles.discovery import FileState, Fingerprint
from fillmask.bundles.golden import Golden, GoldenFill, GoldenLabels, GoldenPrompt
from fillmask.errors import BundleError
from fillmask.models import loader, registry, weights_watch
from fillmask.tokenization.tokenizer import Tokenizer
from tests.service.tiny import GOLDEN_TEXTS, write_bundle
from tests.simulation.machine.runtime import (
    LABELS,
    SimulatedRuntime,
    answer_key,
    label_logits_of,
    log_probs_of,
)

if TYPE_CHECKING:
    from random import Random

    from tests.simulation.machine.loop import VirtualLoop
    from tests.simulation.machine.runtime import Speed

Health = Literal["good", "invalid", "panics", "changes", "wrong", "unreadable", "stalls"]
BAD: tuple[Health, ...] = ("invalid", "panics", "changes", "wrong", "unreadable", "stalls")
PARENT = Path("/bundles")
# name of each model -> its tasks
MODELS: dict[str, tuple[Task, ...]] = {
    "alpha": ("fill-mask", "text-classification"),
    "beta": ("fill-mask",),
}
SALTS = 3


class PanicError(BaseException):
    """Error as a panic in Rust, which is no Exception."""


@dataclass
class Version:
    """A version of a bundle. The salt decides its answers."""

    name: str
    salt: int = 0
    health: Health = "good"
    number: int = 0


@dataclass
class Disk:
    """The bundles by their directory.

    Attributes:
        mapped: whether models keep their weights mapped, so that a write to them matters.
    """

    loop: "VirtualLoop"
    random: "Random"
    speed: "Speed"
    mapped: bool = False
    versions: dict[Path, Version] = field(
        default_factory=lambda: {PARENT / name: Version(name) for name in MODELS}
    )
    _numbers: int = 0

    def put(self, path: Path, salt: int, health: Health) -> None:
        """Replace a bundle by another version."""
        self._numbers += 1
        self.versions[path] = Version(path.name, salt, health, self._numbers)

    def write_to_weights(self, path: Path) -> None:
        """Write to the file that is in use, which no one should do."""
        self._numbers += 1
        self.versions[path].number += 1000 * self._numbers

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the service read these bundles."""
        tokenizer = SimpleNamespace(from_bundle=lambda _: _base()[1])
        with ExitStack() as patches:
            for module, name, replacement in (
                (loader, "read_bundle", self._read),
                (loader, "fingerprint", self._fingerprint),
                (weights_watch, "file_state", self._file_state),
                (loader, "Runtime", self._runtime),
                (loader, "Tokenizer", tokenizer),
                (registry, "fingerprint", self._fingerprint),
                (registry, "find_bundles", self._find),
            ):
                patches.enter_context(patch.object(module, name, replacement))
            yield

    def _find(self, _: Path) -> list[Path]:
        return sorted(self.versions)

    def _read(self, path: Path) -> Bundle:
        version = self.versions[path]
        if version.health == "invalid":
            raise BundleError("The bundle is invalid: model.onnx is missing.")
        if version.health == "panics":
            raise PanicError
        if version.health == "unreadable":
            raise PermissionError(13, "Permission denied")
        if version.health == "changes":
            self.put(path, version.salt, "changes")
        golden_salt = version.salt + (version.health == "wrong")
        bundle = _bundle(version.name, version.salt, golden_salt)
        bundle._path = path
        return bundle

    def _runtime(self, model_path: Path, threads: int, **_: object) -> SimulatedRuntime:
        version = self.versions[model_path.parent]
        self.speed.threads = threads
        return SimulatedRuntime(
            self.loop,
            self.random,
            self.speed,
            version.salt,
            MODELS[version.name],
            weights_copied=not self.mapped,
            extra_s=200.0 if version.health == "stalls" else 0.0,
        )

    def _fingerprint(self, path: Path) -> Fingerprint:
        return {WEIGHTS_FILE: self._file_state(path / WEIGHTS_FILE)}

    def _file_state(self, file: Path) -> FileState:
        number = self.versions[file.parent].number
        return FileState((1, number % 1000), 1, number, number)


@cache
def _base() -> tuple[Bundle, Tokenizer]:
    with tempfile.TemporaryDirectory() as directory:
        bundle = read_bundle(write_bundle(Path(directory) / "tiny").path)
        return bundle, Tokenizer.from_bundle(bundle)


@cache
def _golden(name: str, salt: int) -> Golden:
    """Return golden prompts from the answers of a salt."""
    _, tokenizer = _base()
    prompts, labels = [], []
    for text in GOLDEN_TEXTS:
        encoded = tokenizer.encode(text)
        ids = encoded.input_ids
        fills = []
        for position in encoded.mask_positions.tolist():
            tokens, log_probs = log_probs_of(answer_key(ids, position, salt))
            best = zip(tokens[:5].tolist(), log_probs[:5].tolist(), strict=True)
            fills.append(tuple(GoldenFill(token=t, log_prob=p) for t, p in best))
        prompts.append(GoldenPrompt(text=text, fills=tuple(fills)))
        logits = label_logits_of(answer_key(ids, 0, salt)).tolist()
        labels.append(GoldenLabels(text=text, logits=logits))
    keys: dict[str, Any] = {"log_prob_tolerance": 1e-4, "prompts": tuple(prompts)}
    if "text-classification" in MODELS[name]:
        keys |= {"logit_tolerance": 1e-4, "labels": tuple(labels)}
    return Golden(**keys)


def _bundle(name: str, salt: int, golden_salt: int) -> Bundle:
    classification = None
    if "text-classification" in MODELS[name]:
        classification = Classification(
            labels=LABELS, problem_type="single_label_classification", pooling="first"
        )
    return _base()[0].model_copy(
        update={
            "name": name,
            "description": str(salt),
            "tasks": MODELS[name],
            "classification": classification,
            "golden": _golden(name, golden_salt),
        }
    )
