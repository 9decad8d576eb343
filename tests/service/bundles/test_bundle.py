"""Reading of valid and invalid bundles."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from fillmask.bundles.bundle import FUSED_FILE, MAX_BYTES, read_bundle
from fillmask.errors import BundleError
from tests.service.conftest import EditBundle

COPY_AGAIN = "; copy or export the bundle again"


@pytest.mark.parametrize(
    "name", ["google-bert/bert-base-uncased", "a b", "modèle", "模型", "v1.0+x=y,z", "a" * 200]
)
def test_reads_names(name: str, edit_bundle: EditBundle) -> None:
    assert read_bundle(edit_bundle(lambda bundle: bundle.update(name=name))).name == name


def test_a_hash_in_capital_letters_is_the_same(edit_bundle: EditBundle) -> None:
    def capitals(bundle: dict[str, Any]) -> None:
        for record in bundle["files"].values():
            record["sha256"] = record["sha256"].upper()

    assert read_bundle(edit_bundle(capitals)).name == "tiny"


@pytest.mark.parametrize("more", [-1, 1])
def test_refuses_a_file_of_another_size(more: int, edit_bundle: EditBundle) -> None:
    # A file from an incomplete download has the wrong size.
    path = edit_bundle(lambda _: None)
    size = (path / "model.onnx").stat().st_size
    os.truncate(path / "model.onnx", size + more)
    problem = rf"model.onnx must have {size} bytes \(got {size + more}\)"
    with pytest.raises(BundleError, match=problem):
        read_bundle(path)


@pytest.mark.parametrize("name", ["model.onnx", "weights.bin", "tokenizer.json"])
def test_refuses_a_changed_byte(name: str, bundle_copy: Path) -> None:
    # Only the hash of the file changes, not the size.
    content = bytearray((bundle_copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (bundle_copy / name).write_bytes(content)
    with pytest.raises(BundleError, match=f"the SHA-256 of {name} differs from "):
        read_bundle(bundle_copy)


@pytest.mark.parametrize("name", ["bundle.json", "model.onnx", "weights.bin", "tokenizer.json"])
def test_refuses_a_missing_file(name: str, bundle_copy: Path) -> None:
    (bundle_copy / name).unlink()
    with pytest.raises(BundleError, match=f"invalid: {name} is missing from "):
        read_bundle(bundle_copy)


@pytest.mark.skipif(sys.platform == "win32", reason="it has no FIFOs")
@pytest.mark.parametrize("name", ["bundle.json", "weights.bin"])
def test_refuses_what_is_no_regular_file(
    name: str, bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A FIFO without a writer would block the reader.
    def refuse(problem: str) -> None:
        with pytest.raises(BundleError) as caught:
            read_bundle(bundle_copy)
        assert str(caught.value).startswith(f"The bundle is invalid: {name} {problem} ")
        file.rmdir() if file.is_dir() else file.unlink()

    file = bundle_copy / name
    file.unlink()
    file.mkdir()
    refuse(f"in {bundle_copy} must be a regular file;")
    file.symlink_to("/dev/zero")
    refuse(f"in {bundle_copy} must be a regular file;")
    file.symlink_to(name)
    refuse("is missing from")
    os.mkfifo(file)
    refuse(f"in {bundle_copy} must be a regular file;")
    os.mkfifo(file)
    monkeypatch.setattr(Path, "is_file", lambda _: True)  # one that comes after the check
    with pytest.raises((BundleError, OSError)):
        read_bundle(bundle_copy)


def test_reads_no_more_than_the_limit(bundle_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The file may grow after the check of its size.
    bundle = read_bundle(bundle_copy)
    size = bundle.tokenizer_path.stat().st_size
    monkeypatch.setitem(MAX_BYTES, "tokenizer.json", size)
    assert len(bundle.read_tokenizer()) == size
    os.truncate(bundle.tokenizer_path, 2**40)
    with pytest.raises(OSError, match=f"more than {size} bytes"):
        bundle.read_tokenizer()


def test_refuses_a_link_out_of_the_directory(bundle_copy: Path, tmp_path: Path) -> None:
    # A bundle must not make the service read files outside its directory.
    (bundle_copy / "tokenizer.json").rename(tmp_path / "elsewhere")
    (bundle_copy / "tokenizer.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match=r"tokenizer.json is a link to a file outside"):
        read_bundle(bundle_copy)


@pytest.mark.parametrize("name", sorted(MAX_BYTES.keys() - {FUSED_FILE}))
def test_refuses_what_is_too_large_to_be_read(
    name: str, bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The check does not rely on the size in bundle.json.
    size = (bundle_copy / name).stat().st_size
    monkeypatch.setitem(MAX_BYTES, name, size)
    read_bundle(bundle_copy)
    monkeypatch.setitem(MAX_BYTES, name, size - 1)
    with pytest.raises(
        BundleError, match=rf"{name} must have at most {size - 1} bytes \(got {size}\)"
    ):
        read_bundle(bundle_copy)


def test_reads_a_link_within_the_directory(bundle_copy: Path) -> None:
    # Kubernetes mounts the files of a volume as links to a directory beside them.
    (bundle_copy / "data").mkdir()
    (bundle_copy / "tokenizer.json").rename(bundle_copy / "data" / "tokenizer.json")
    (bundle_copy / "tokenizer.json").symlink_to("data/tokenizer.json")
    assert read_bundle(bundle_copy).name == "tiny"


def test_refuses_what_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="nowhere is not a directory"):
        read_bundle(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "bundle.json is not valid JSON (expecting value at line 1, column 1)"),
        (b"[" * 100_000, "bundle.json is nested too deeply"),
        (b'{"a": NaN}', "bundle.json contains NaN, which is not a JSON number"),
        (b"\xff\xfe\x00", "bundle.json is not valid UTF-8 at byte 1"),
        (b'{"license": "\xed\xa0\x80"}', "bundle.json is not valid UTF-8 at byte 14"),
        # GET /info could not return such a text
        (b'{"license": "\\ud800"}', "bundle.json has an unpaired surrogate escape"),
        (b'{"name": "a", "name": "b"}', 'The field "name" is a duplicate'),
    ],
)
def test_refuses_what_is_not_json(content: bytes, reason: str, bundle_copy: Path) -> None:
    (bundle_copy / "bundle.json").write_bytes(content)
    with pytest.raises(BundleError) as caught:
        read_bundle(bundle_copy)
    assert str(caught.value) == f"The bundle is invalid: {reason}{COPY_AGAIN}."
