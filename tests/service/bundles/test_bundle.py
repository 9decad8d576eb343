"""Reading of valid and invalid bundles."""

import json
import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fillmask.bundles.bundle import FUSED_FILE, MAX_BYTES, read_bundle
from fillmask.errors import BundleError
from tests.service.conftest import EditBundle


def test_reads_what_was_written(bundle_copy: Path) -> None:
    written = json.loads((bundle_copy / "bundle.json").read_text())
    bundle = read_bundle(bundle_copy)
    for name in ("name", "license", "description", "created_with", "max_tokens", "mask_token"):
        assert getattr(bundle, name) == written[name]
    assert bundle.architecture.vocab_size == written["architecture"]["vocab_size"]
    assert bundle.architecture.tied is True
    assert bundle.special_token_ids == (0, 1, 2, 3, 4)
    assert bundle.verification == written["verification"]
    assert [prompt.text for prompt in bundle.golden.prompts] == [
        prompt["text"] for prompt in written["golden"]["prompts"]
    ]
    assert (
        bundle.golden.prompts[1].fills[0][0].token
        == (written["golden"]["prompts"][1]["fills"][0][0]["token"])
    )
    assert bundle.model_path.is_file()
    assert bundle.tokenizer_path.is_file()


MANY = 50_000
COPY_AGAIN = "; copy or export the bundle again"
EXPORT_AGAIN = "; export the checkpoint with this release of fillmask"
NAME_RULE = (
    "name must have 1 to 200 printable characters without a blank at its start or end, and without "
    'a part of a path that leads elsewhere (got "{}")'
)
BAD_DESCRIPTIONS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "missing": (lambda b: b.pop("license"), "license is missing" + EXPORT_AGAIN),
    "unknown": (
        lambda b: b.update(colour=1),
        "colour is an unknown field" + EXPORT_AGAIN,
    ),
    "mistyped": (lambda b: b.update(name=3), "name must be a text (got 3)"),
    "text for number": (
        lambda b: b.update(max_tokens="32"),
        'max_tokens must be a whole number (got "32")',
    ),
    "true for number": (
        lambda b: b.update(max_tokens=True),
        "max_tokens must be a whole number (got true)",
    ),
    "zero": (lambda b: b.update(max_tokens=0), "max_tokens must be at least 1 (got 0)"),
    "nested missing": (
        lambda b: b["architecture"].pop("d_ff"),
        "architecture.d_ff is missing" + EXPORT_AGAIN,
    ),
    "nested unknown": (
        lambda b: b["architecture"].update(gates=2),
        "architecture.gates is an unknown field" + EXPORT_AGAIN,
    ),
    "tied": (
        lambda b: b["architecture"].update(tied=1),
        "architecture.tied must be true or false (got 1)",
    ),
    "object": (lambda b: b.update(golden=[]), "golden must be an object (got [])"),
    "version": (
        lambda b: b.update(schema_version=5),
        "schema_version must be 2 or 3 or 4 (got 5)" + EXPORT_AGAIN,
    ),
    "precision": (
        lambda b: b.update(precision="fp8"),
        """precision must be 'fp32' or 'int8' (got "fp8")""",
    ),
    "positions": (
        lambda b: b.update(max_tokens=33),
        "max_tokens must be at most architecture.max_positions, 32 (got 33)",
    ),
    "mask not special": (
        lambda b: b.update(special_token_ids=[0, 1]),
        "special_token_ids must contain mask_token_id, 4 (got [0, 1])",
    ),
    "special too large": (
        lambda b: b.update(special_token_ids=[4, 999]),
        "special_token_ids must be below architecture.vocab_size, 44 (got 999)",
    ),
    "special just too large": (
        lambda b: b.update(special_token_ids=[4, 44]),
        "special_token_ids must be below architecture.vocab_size, 44 (got 44)",
    ),
    "special not a number": (
        lambda b: b.update(special_token_ids=["4"]),
        'special_token_ids[0] must be a whole number (got "4")',
    ),
    "no prompts": (
        lambda b: b["golden"].update(prompts=[]),
        (
            "golden.prompts must have entries if and only if tasks contains fill-mask "
            "(got 0 with the tasks fill-mask)"
        ),
    ),
    "no fills": (
        lambda b: b["golden"]["prompts"][0].update(fills=[[]]),
        "golden.prompts[0].fills[0] must be a list with at least 1 entry (got [])",
    ),
    "fill": (
        lambda b: b["golden"]["prompts"][1]["fills"][0][0].pop("token"),
        "golden.prompts[1].fills[0][0].token is missing" + EXPORT_AGAIN,
    ),
    "tolerance": (
        lambda b: b["golden"].update(log_prob_tolerance=0),
        "golden.log_prob_tolerance must be more than 0 (got 0)",
    ),
    "infinite": (
        lambda b: b["golden"].update(log_prob_tolerance=10**400),
        f"golden.log_prob_tolerance must be a number (got 1{39 * '0'}…)",
    ),
    "many unknown": (
        lambda b: b["architecture"].update({str(n): n for n in range(100)}),
        'architecture["0"] is an unknown field' + EXPORT_AGAIN,
    ),
    "path": (
        lambda b: b["files"].update({"../model.onnx": {}}),
        'files["../model.onnx"] is an unknown field' + EXPORT_AGAIN,
    ),
    "backslash": (
        lambda b: b["files"].update({"..\\model.onnx": {}}),
        'files["..\\\\model.onnx"] is an unknown field' + EXPORT_AGAIN,
    ),
    "another file": (
        lambda b: b["files"].update({"code.py": {}}),
        'files["code.py"] is an unknown field' + EXPORT_AGAIN,
    ),
    "unlisted": (
        lambda b: b["files"].pop("model.onnx"),
        'files["model.onnx"] is missing' + EXPORT_AGAIN,
    ),
    "fraction": (
        lambda b: b.update(max_tokens=32.0),
        "max_tokens must be a whole number (got 32.0)",
    ),
    "negative": (
        lambda b: b.update(special_token_ids=[4, -1]),
        "special_token_ids[1] must be at least 0 (got -1)",
    ),
    "name of several lines": (
        lambda b: b.update({"a\n1": 1}),
        '["a\\n1"] is an unknown field' + EXPORT_AGAIN,
    ),
    "long name": (
        lambda b: b.update({"a" * 1000: 1}),
        f'["{77 * "a"}…"] is an unknown field' + EXPORT_AGAIN,
    ),
    "object for text": (lambda b: b.update(name={"a": 1}), "name must be a text (got an object)"),
    "list for text": (lambda b: b.update(name=[1, 2]), "name must be a text (got a list)"),
    "several": (
        lambda b: b.update(schema_version=1, name=3, colour=1),
        "schema_version must be 2 or 3 or 4 (got 1)" + EXPORT_AGAIN,
    ),
    "empty name": (lambda b: b.update(name=""), NAME_RULE.format("")),
    "blank at the end": (lambda b: b.update(name="a "), NAME_RULE.format("a ")),
    "name with a line": (
        lambda b: b.update(name="a\nfillmask 1 serves b"),
        NAME_RULE.format("a\\\\nfillmask 1 serves b"),
    ),
    "name with a control character": (
        lambda b: b.update(name="a\x1b[2J"),
        NAME_RULE.format("a\\\\x1b[2J"),
    ),
    "name with a line separator": (
        lambda b: b.update(name="a\u2028b"),
        NAME_RULE.format("a\\\\u2028b"),
    ),
    "name of 201 characters": (
        lambda b: b.update(name="a" * 201),
        NAME_RULE.format(77 * "a" + "…"),
    ),
    "hash": (
        lambda b: b["files"]["model.onnx"].update(sha256="0" * 64),
        "the SHA-256 of model.onnx differs from the SHA-256 in bundle.json" + COPY_AGAIN,
    ),
}


@pytest.mark.parametrize("case", BAD_DESCRIPTIONS)
def test_refuses(case: str, edit_bundle: EditBundle) -> None:
    change, reason = BAD_DESCRIPTIONS[case]
    with pytest.raises(BundleError) as caught:
        read_bundle(edit_bundle(change))
    assert str(caught.value) == f"The bundle is invalid: {reason}."


@pytest.mark.parametrize("case", ["prompts", "fields"])
def test_stops_at_the_first_of_many_errors(
    case: str, edit_bundle: EditBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Errors take much more memory than the values in bundle.json.
    def change(bundle: dict[str, Any]) -> None:
        if case == "prompts":
            bundle["golden"]["prompts"] = [1] * MANY
        else:
            bundle |= {str(number): number for number in range(MANY)}

    path = edit_bundle(change)
    monkeypatch.setitem(MAX_BYTES, "bundle.json", 2**20)  # the reader allocates them all
    tracemalloc.start()
    with pytest.raises(BundleError):
        read_bundle(path)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 400 * MANY


@pytest.mark.parametrize(
    "name", ["google-bert/bert-base-uncased", "a b", "modèle", "模型", "v1.0+x=y,z", "a" * 200]
)
def test_reads_names(name: str, edit_bundle: EditBundle) -> None:
    assert read_bundle(edit_bundle(lambda bundle: bundle.update(name=name))).name == name


def test_refuses_a_number_beyond_all_floats(bundle_copy: Path) -> None:
    file = bundle_copy / "bundle.json"
    tolerance = json.loads(file.read_text())["golden"]["log_prob_tolerance"]
    content = file.read_text().replace(
        f'"log_prob_tolerance": {tolerance}', '"log_prob_tolerance": 1e999'
    )
    file.write_text(content)
    with pytest.raises(BundleError, match=r"log_prob_tolerance must be a finite number"):
        read_bundle(bundle_copy)


def test_a_hash_in_capital_letters_is_the_same(edit_bundle: EditBundle) -> None:
    def capitals(bundle: dict[str, Any]) -> None:
        for record in bundle["files"].values():
            record["sha256"] = record["sha256"].upper()

    assert read_bundle(edit_bundle(capitals)).name == "tiny"


def test_a_bundle_cannot_be_changed(bundle_copy: Path) -> None:
    bundle = read_bundle(bundle_copy)
    with pytest.raises(ValidationError, match="frozen"):
        bundle.max_tokens = 1


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
@pytest.mark.parametrize("name", ["bundle.json", "model.onnx", "weights.bin", "tokenizer.json"])
def test_refuses_what_is_no_regular_file(name: str, bundle_copy: Path) -> None:
    # A FIFO without a writer would block the reader.
    def refuse(problem: str) -> None:
        with pytest.raises(BundleError) as caught:
            read_bundle(bundle_copy)
        assert str(caught.value).startswith(f"The bundle is invalid: {name} {problem} ")

    file = bundle_copy / name
    file.unlink()
    os.mkfifo(file)
    refuse(f"in {bundle_copy} must be a regular file;")
    file.unlink()
    file.mkdir()
    refuse(f"in {bundle_copy} must be a regular file;")
    file.rmdir()
    file.symlink_to("/dev/zero")
    refuse(f"in {bundle_copy} must be a regular file;")
    file.unlink()
    file.symlink_to(name)
    refuse("is missing from")


@pytest.mark.skipif(sys.platform == "win32", reason="it has no FIFOs")
@pytest.mark.parametrize("name", ["bundle.json", "model.onnx", "weights.bin", "tokenizer.json"])
def test_a_fifo_after_the_check_blocks_nothing(
    name: str, bundle_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bundle_copy / name).unlink()
    os.mkfifo(bundle_copy / name)
    monkeypatch.setattr(Path, "is_file", lambda _: True)
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


def test_refuses_a_list(bundle_copy: Path) -> None:
    (bundle_copy / "bundle.json").write_text("[]")
    with pytest.raises(BundleError, match=r"bundle.json must be an object"):
        read_bundle(bundle_copy)
