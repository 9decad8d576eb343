"""Fingerprints: the same if the answers are, and another if they may not be."""

from pathlib import Path
from typing import Any

import pytest

from service.bundles.bundle import read_bundle
from service.command.fingerprint import fingerprint
from service.command.shard import WHOLE, Shard
from tests.service.conftest import EditBundle
from tests.service.tiny import Tiny


def test_the_same_content_is_the_same_job(tiny: Tiny, tmp_path: Path) -> None:
    """Whatever the file is called and however old it is."""
    bundle = read_bundle(tiny.path)
    prints = []
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("same")
        prints.append(fingerprint(tmp_path / name, "x", {"top_k": 1}, bundle, WHOLE))
    assert prints[0] == prints[1]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("input", {"content": "other"}),
        ("field", {"field": "y"}),
        ("parameters", {"parameters": {"top_k": 2}}),
        ("shard", {"shard": Shard(0, 2)}),
    ],
)
def test_what_makes_another_job(
    tiny: Tiny, tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    """One thing differs, and it is called by its name."""
    path = tmp_path / "a.jsonl"
    prints = []
    for more in ({}, change):
        asked: dict[str, Any] = {"field": "x", "parameters": {"top_k": 1}, "shard": WHOLE, **more}
        path.write_text(asked.pop("content", "same"))
        prints.append(fingerprint(path, bundle=read_bundle(tiny.path), **asked))
    assert [key for key in prints[0] if prints[0][key] != prints[1][key]] == [name]


def test_another_model_is_another_job(tiny: Tiny, tmp_path: Path, edit_bundle: EditBundle) -> None:
    """Also if only one of its files is another."""
    path = tmp_path / "a.jsonl"
    path.touch()
    other = edit_bundle(lambda bundle: bundle.update(name="other"))
    one, two = (
        fingerprint(path, "x", {}, read_bundle(bundle), WHOLE) for bundle in (tiny.path, other)
    )
    assert one["bundle"] != two["bundle"]
