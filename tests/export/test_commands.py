"""The command `fillmask-export` with directories of checkpoints; hub/ has those of a hub."""

from __future__ import annotations

import json
import shutil
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from fillmask.bundles.bundle import read_bundle
from fillmask.engine.runtime import Runtime
from fillmask_export.commands import main
from fillmask_export.graph.served import save_graph
from fillmask_export.source import load_source
from fillmask_model.checkpoints.checkpoint import Checkpoint, save_checkpoint
from fillmask_model.encoder.encoder import TiedEncoder
from tests.export.label_bundles import TEXTS, label_checkpoint
from tests.model.samples import VERSES


def lines(path: Path, texts: Sequence[str] = VERSES) -> str:
    """Write a file of texts and return its path."""
    path.write_text("\n".join(texts))
    return str(path)


def test_a_bundle_and_a_reference_graph(
    checkpoint_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A bundle in int8 without a fused graph says why, here for a package of another version. By
    # default, the texts are English, most of which the small vocabulary lacks.
    monkeypatch.setitem(sys.modules, "fillmask_native", SimpleNamespace(OPERATORS_VERSION=0))
    bundle, reference = tmp_path / "bundle", tmp_path / "reference.onnx"
    texts = ["--texts", lines(tmp_path / "texts.txt")]
    flags = ["--precision", "int8", "--rounding", "nearest", *texts]
    assert main([str(checkpoint_path), "--output", str(bundle), *flags]) == 0
    printed = capsys.readouterr().out
    assert "verified and written" in printed
    assert "without a fused graph, because fillmask-native must have version" in printed
    assert json.loads((bundle / "bundle.json").read_text())["name"] == "tiny"
    flags = ["--overwrite", "--max-tokens", "20"]
    assert main([str(checkpoint_path), "--output", str(bundle), *flags]) == 0
    figures = json.loads((bundle / "bundle.json").read_text())["verification"]["tokens"]
    share = f"{100 * figures['unknown_share']:.1f}"
    out, error = capsys.readouterr()
    assert f"verified on English texts, of whose tokens {share} % are unknown" in out
    assert "fillmask-export: warning: " in error
    assert main([str(checkpoint_path), "--reference", str(reference)]) == 0
    assert reference.stat().st_size > 0


def test_a_checkpoint_without_fills_has_no_reference_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The reference graph only fills masks. The same checkpoint gives a bundle with labels.
    checkpoint = label_checkpoint("labels")
    assert checkpoint.tokenizer_json is not None
    directory = tmp_path / "checkpoint"
    save_checkpoint(directory, checkpoint.model, checkpoint.tokenizer_json, fills=False)
    reference, bundle = tmp_path / "reference.onnx", tmp_path / "bundle"
    assert main([str(directory), "--reference", str(reference)]) == 2
    assert "the checkpoint has no masked-language-model head" in capsys.readouterr().err
    assert not reference.exists()
    flags = ["--output", str(bundle), "--texts", lines(tmp_path / "texts", TEXTS)]
    assert main([str(directory), *flags]) == 0
    assert read_bundle(bundle).tasks == ("text-classification",)


def test_the_encoder_is_gone_before_a_graph_is_loaded(
    checkpoint_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Memory may be too small for both a large encoder and the runtime of its graph.
    encoders: list[weakref.ref[TiedEncoder]] = []
    alive_at_load: list[bool] = []

    def save(model: TiedEncoder, *arguments: Any, **options: Any) -> None:
        encoders.append(weakref.ref(model))
        save_graph(model, *arguments, **options)

    class Watched(Runtime):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            alive_at_load.append(encoders[0]() is not None)
            super().__init__(*arguments, **options)

    monkeypatch.setattr("fillmask_export.bundle.write_bundle.save_graph", save)
    monkeypatch.setattr("fillmask_export.bundle.write_bundle.Runtime", Watched)
    monkeypatch.setattr("fillmask_export.heads.tasks.Runtime", Watched)
    texts = lines(tmp_path / "texts.txt")
    flags = ["--precision", "int8", "--texts", texts, "--calibrate", texts]
    assert main([str(checkpoint_path), "--output", str(tmp_path / "bundle"), *flags]) == 0
    assert len(encoders) == 2
    assert alive_at_load == [False] * 3


@pytest.mark.parametrize(("rounding", "read"), [("gptq", 9), ("nearest", 5)])
def test_rounding_to_nearest_calibrates_with_every_other_sentence(
    rounding: str,
    read: int,
    checkpoint_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Only GPTQ gets a directory for its matrices.
    given: list[tuple[int, bool]] = []

    def round_weights(
        _: Checkpoint, calibration: Sequence[object], __: int, scratch: Path | None
    ) -> None:
        given.append((len(calibration), scratch is not None))
        raise ValueError("enough")

    monkeypatch.setattr("fillmask_export.bundle.write_bundle.int8_weights", round_weights)
    sentences = lines(tmp_path / "sentences", [f"sentence {number}" for number in range(9)])
    flags = ["--precision", "int8", "--rounding", rounding, "--calibrate", sentences]
    texts = ["--texts", lines(tmp_path / "texts"), "--output", str(tmp_path / "bundle")]
    assert main([str(checkpoint_path), *flags, *texts]) == 2
    assert given == [(read, rounding == "gptq")]


def test_the_cache_needs_one_export_of_the_same_files(
    checkpoint_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A file that changes during the export, and another option, need another one.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = shutil.copytree(checkpoint_path, tmp_path / "tiny")
    arguments = [str(source), "--cache", "--texts", lines(tmp_path / "texts")]

    def load_and_change(*given: Any) -> Checkpoint:
        (source / "notes").mkdir()
        (source / "notes" / "one").touch()
        return load_source(*given)

    with monkeypatch.context() as patch:
        patch.setattr("fillmask_export.commands.load_source", load_and_change)
        assert main(arguments) == 0
    told = f"{source} has changed during the export; export it again"
    assert told in capsys.readouterr().err
    for exported in (True, False):
        assert main(arguments) == 0
        printed = capsys.readouterr()
        assert told not in printed.err
        assert ("in the cache" in printed.out) != exported
    lines(tmp_path / "texts", VERSES[1:])
    assert main(arguments) == 0
    assert "in the cache" not in capsys.readouterr().out


@pytest.mark.parametrize("output", ["--output", "--reference"])
def test_a_full_disk_leaves_nothing(
    output: str,
    checkpoint_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fill(_: object, file: Path) -> None:
        file.write_bytes(b"half of a graph")
        raise OSError("4480 requested and 1856 written")

    monkeypatch.setattr(onnx, "save", fill)
    path = tmp_path / "new"
    assert main([str(checkpoint_path), output, str(path)]) == 2
    sentence = f"fillmask-export: {path} cannot be written, because its disk is full; free some"
    assert capsys.readouterr().err.startswith(sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["./absent", "--output", "bundle"], "absent does not exist; name the directory of"),
        # before any work, such as a download
        (["org/model", "--output", "bundle", "--name", " a"], "name must have 1 to 200 printable"),
        (["tiny", "--output", "photos"], "photos exists but is not a bundle"),
        (["tiny", "--output", "bundle", "--texts", "blank"], "blank has no text"),
        (["tiny", "--output", "bundle", "--texts", "latin"], "latin is not valid UTF-8"),
    ],
)
def test_an_error_is_one_sentence(
    arguments: list[str],
    message: str,
    checkpoint_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny").symlink_to(checkpoint_path)
    Path("photos").mkdir()
    Path("blank").write_bytes(b"\n \n")
    Path("latin").write_bytes(b"caf\xe9\n")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("fillmask-export: ")
    assert message in error
    assert error.count("\n") == 1
    with pytest.raises(SystemExit):
        main(["tiny"])
    assert "exactly one of --output" in capsys.readouterr().err
