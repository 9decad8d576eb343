"""Cache of exported bundles, with an export that only writes a file."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fillmask.bundles.bundle import SCHEMA_VERSION
from fillmask.bundles.cache import (
    RECORD_FILE,
    cached_bundle,
    export_record,
    exported_bundle,
    is_current,
)
from fillmask.errors import StartupError

pytestmark = pytest.mark.processes
EXPORT = f"""
import json, os, pathlib, sys, time
if os.environ.get("WAIT"):
    pathlib.Path("begun").touch()
    try:
        time.sleep(60)
    finally:
        pathlib.Path("removed").touch()
cache, precision, int8, _, checkpoint = sys.argv[1:]
assert (cache, precision, int8) == ("--cache", "--precision", "int8")
if checkpoint == "org/bad":
    sys.exit(2)
from fillmask.bundles.cache import RECORD_FILE, cached_bundle, export_record
bundle = cached_bundle(checkpoint)
record = export_record(checkpoint, {{"precision": "int8"}})
bundle.mkdir(parents=True, exist_ok=True)
(bundle / "bundle.json").write_text(json.dumps({{"schema_version": {SCHEMA_VERSION}}}))
(bundle / RECORD_FILE).write_text(json.dumps(record))
print("an export writes to its standard output")
"""


@pytest.fixture(autouse=True)
def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directory with a package that takes the place of the export."""
    package = tmp_path / "installed" / "fillmask_export"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(EXPORT)
    monkeypatch.setenv("PYTHONPATH", str(package.parent), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return package


def test_an_id_has_a_directory_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cached_bundle("org/tiny") == tmp_path / "cache" / "fillmask" / "org--tiny"
    assert cached_bundle("absent/../../..").parent == tmp_path / "cache" / "fillmask"
    for home in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        assert cached_bundle("tiny") == Path.home() / ".cache" / "fillmask" / "tiny"


def test_directories_of_the_same_name_have_their_own_bundles(tmp_path: Path) -> None:
    for parent in ("one", "two"):
        (tmp_path / parent / "tiny").mkdir(parents=True)
    one, two = (cached_bundle(f"{parent}/tiny") for parent in ("one", "two"))
    assert one != two
    assert one.name.startswith("tiny-")
    assert cached_bundle(str(tmp_path / "one" / "tiny")) == one


def test_the_second_start_exports_nothing(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # the current directory may be a checkpoint that somebody else has written
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    bundle = exported_bundle("org/tiny")
    assert bundle == cached_bundle("org/tiny")
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "an export writes to its standard output" in printed.err
    assert str(bundle) in printed.err
    assert exported_bundle("org/tiny") == bundle
    assert capfd.readouterr() == ("", "")


def _copy(source: str, target: str) -> None:
    """Copy a file with its times, as cp -p does."""
    shutil.copy2(source, target)


def _move(source: str, target: str) -> None:
    shutil.copy2(source, "moved")
    Path("moved").rename(target)


def _link(link: str, target: str) -> None:
    Path(link).unlink(missing_ok=True)
    Path(link).symlink_to(Path(target).resolve())


# what happens to a checkpoint, and whether it is another one then
CHANGES: dict[str, tuple[Callable[[], object], bool]] = {
    "nothing": (lambda: None, False),
    "a later time": (lambda: os.utime("tiny/config.json", (2e9, 2e9)), False),
    "a copy of itself": (lambda: _move("tiny/weights", "tiny/weights"), False),
    "a hidden file": (lambda: Path("tiny/.cache").touch(), False),
    "a loop of links": (lambda: _link("tiny/loop", "tiny"), False),
    "other content": (lambda: Path("tiny/config.json").write_text("{ }"), True),
    "an older file by cp -p": (lambda: _copy("old", "tiny/weights"), True),
    "an older file by mv": (lambda: _move("old", "tiny/weights"), True),
    "a file of the same time and size by cp -p": (lambda: _copy("twin", "tiny/weights"), True),
    "a file of the same time and size by mv": (lambda: _move("twin", "tiny/weights"), True),
    "a folder's file": (lambda: Path("tiny/1_Pooling/config.json").write_text("[1]"), True),
    "a linked folder's file": (lambda: Path("linked/config.json").write_text("[2]"), True),
    "the target of a link": (lambda: Path("blob").write_text("{2}"), True),
    "another target of a link": (lambda: _link("tiny/link", "old"), True),
    "a new file": (lambda: Path("tiny/tokenizer.json").touch(), True),
    "a new folder": (lambda: shutil.copytree("tiny/1_Pooling", "tiny/2_Normalize"), True),
    "a file less": (lambda: Path("tiny/1_Pooling/config.json").unlink(), True),
    "no record": (lambda: shutil.move(cached_bundle("tiny") / RECORD_FILE, "moved"), True),
    "another record": (lambda: (cached_bundle("tiny") / RECORD_FILE).write_text("[]"), True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_bundle_is_current_until_its_directory_changes(change: str) -> None:
    for folder in ("tiny/1_Pooling", "linked"):
        Path(folder).mkdir(parents=True)
        Path(folder, "config.json").write_text("[0]")
    Path("tiny/config.json").write_text("{}")
    for file, content in {
        "tiny/weights": "one",
        "twin": "two",
        "old": "old",
        "blob": "{1}",
    }.items():
        Path(file).write_text(content)
        os.utime(file, (1e9, 1e9 if file != "old" else 9e8))
    _link("tiny/link", "blob")
    _link("tiny/3_Linked", "linked")
    bundle = cached_bundle("tiny")
    bundle.mkdir(parents=True)
    (bundle / "bundle.json").write_text(json.dumps({"schema_version": SCHEMA_VERSION}))
    (bundle / RECORD_FILE).write_text(json.dumps(export_record("tiny", {"precision": "int8"})))
    make, changed = CHANGES[change]
    make()
    assert is_current(bundle, "tiny") != changed
    assert not is_current(bundle, "tiny", {"precision": "fp32"})
    assert is_current(bundle, "tiny", {"precision": "int8"}) != changed


def test_a_bundle_of_another_release_is_exported_again() -> None:
    bundle = exported_bundle("org/tiny")
    assert is_current(bundle, "org/tiny")
    for content in ("{}", "[]", "{", "", json.dumps({"schema_version": SCHEMA_VERSION - 1})):
        (bundle / "bundle.json").write_text(content)
        assert not is_current(bundle, "org/tiny"), content
    assert exported_bundle("org/tiny") == bundle
    assert is_current(bundle, "org/tiny")


def test_a_failed_export_ends_the_start() -> None:
    with pytest.raises(StartupError, match=r'The export of "org/bad" failed with exit code 2'):
        exported_bundle("org/bad")


def test_without_the_export_the_start_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(StartupError, match=r"this install cannot export one; run fillmask-export"):
        exported_bundle("org/tiny")


def test_a_signal_interrupts_the_export(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fillmask", "--port", "0", "--checkpoint", "org/tiny"]
    with subprocess.Popen(command, env=os.environ | {"WAIT": "1"}) as process:
        end_s = time.monotonic() + 30
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < end_s
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert (tmp_path / "removed").exists()
