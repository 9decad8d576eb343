"""Golden results of an existing bundle, and the file that contains them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fillmask.bundles.bundle import DESCRIPTION_FILE, Bundle, read_bundle
from fillmask.engine.runtime import Runtime
from fillmask_export.heads.samples import Samples
from fillmask_export.heads.tasks import HEADS, golden_results
from fillmask_model.files import atomic_replace


def golden_of(bundle: Bundle, runtime: Runtime, texts: Sequence[str]) -> dict[str, Any]:
    """Return the golden results of a graph of a bundle."""
    return golden_results(Samples.of_bundle(bundle, texts), runtime, bundle.verification)


def renew_golden_results(path: Path, texts: Sequence[str]) -> int:
    """Replace the golden prompts and golden texts of a bundle by results on this machine.

    The function changes only bundle.json.

    Args:
        path: directory of a bundle whose results on this machine are correct.
        texts: plain sentences without masks.

    Returns:
        The number of golden prompts and golden texts.

    Raises:
        BundleError: the bundle is invalid.
        ValueError: no text fits into the maximum length of the bundle.
    """
    bundle = read_bundle(path)
    golden = golden_of(bundle, Runtime(bundle.model_path), texts)
    file = path / DESCRIPTION_FILE
    description = json.loads(file.read_text(encoding="utf-8"))
    write_description(description | {"golden": golden}, file)
    return sum(len(golden.get(head.records, ())) for head in HEADS.values())


def write_description(description: dict[str, Any], file: Path) -> None:
    text = json.dumps(description, indent=2, ensure_ascii=False)
    with atomic_replace(file) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
