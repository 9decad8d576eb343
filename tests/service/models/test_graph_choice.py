"""The choice between the stock graph and the fused graph, at the load of a model."""

import json
import logging
import shutil
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from fillmask.bundles.bundle import default_bundle_path, read_bundle
from fillmask.engine.linux import native_operators
from fillmask.errors import BundleError
from fillmask.models.graph_choice import choose_graph
from fillmask.models.loader import load_model
from fillmask.settings import Settings
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.result import accepted
from fillmask.tasks.task import FILL_MASK
from tests.native_package import load_native

TEXT = "Paris is the [MASK] of France."
pytestmark = pytest.mark.anyio
fillmask_native = load_native()


@pytest.fixture
def any_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the service find operators that may compute on any CPU."""
    monkeypatch.setattr(fillmask_native, "is_fast", lambda: True)
    monkeypatch.setitem(sys.modules, "fillmask_native", fillmask_native)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return Path(shutil.copytree(default_bundle_path(), tmp_path / "bundle"))


async def first_fill(path: Path) -> tuple[str, str]:
    """Return the kind of the graph that a service takes, and its first fill."""
    # the operators are slow on other CPUs than their own, and so are large batches at the start
    settings = Settings(bundle=path, threads=1, max_batch_tokens=32, max_masks=1)
    async with aclosing(await load_model(settings, pytest.fail)) as model:
        found = await model.pipeline(FILL_MASK).compute([TEXT], [FillMaskParameters()])
        [fills] = accepted(found)
        return model.info.graph, fills.masks[0][0].token_str


async def test_the_fused_graph_where_the_operators_are(
    any_cpu: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fillmask")
    assert await first_fill(default_bundle_path()) == ("fused", "capital")
    [line] = [one.getMessage() for one in caplog.records if "graph" in one.getMessage()]
    assert line == (
        f"the model fillmask-minilm-en has the fused graph ({fillmask_native.instruction_set()})"
    )


def missing(patch: pytest.MonkeyPatch, bundle: Path) -> None:
    patch.setitem(sys.modules, "fillmask_native", None)


def other_version(patch: pytest.MonkeyPatch, bundle: Path) -> None:
    patch.setattr(fillmask_native, "OPERATORS_VERSION", 2)


def slow_cpu(patch: pytest.MonkeyPatch, bundle: Path) -> None:
    patch.setattr(fillmask_native, "is_fast", lambda: False)


def damaged_package(patch: pytest.MonkeyPatch, bundle: Path) -> None:
    package = bundle / "fillmask_native"
    package.mkdir()
    (package / "__init__.py").write_text("raise SyntaxError('half of a file')")
    patch.delitem(sys.modules, "fillmask_native")
    patch.syspath_prepend(bundle)


def wrong_golden_results(patch: pytest.MonkeyPatch, bundle: Path) -> None:
    def change(description: dict[str, dict[str, dict[str, list[dict[str, list[object]]]]]]) -> None:
        golden = description["fused"]["golden"]
        golden["prompts"] = golden["prompts"][:1]
        golden["prompts"][0]["fills"][0] = [{"token": 5, "log_prob": -0.1}]

    edit(bundle, change)


def no_fused_graph(patch: pytest.MonkeyPatch, bundle: Path) -> None:
    def change(description: dict[str, dict[str, object]]) -> None:
        del description["fused"], description["files"]["fused.onnx"]

    edit(bundle, change)


def edit(bundle: Path, change: Callable[..., object]) -> None:
    file = bundle / "bundle.json"
    description = json.loads(file.read_text(encoding="utf-8"))
    change(description)
    file.write_text(json.dumps(description), encoding="utf-8")


async def test_the_stock_graph_if_the_fused_one_is_wrong(
    any_cpu: None,
    bundle: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong_golden_results(monkeypatch, bundle)
    caplog.set_level(logging.INFO, "fillmask")
    assert await first_fill(bundle) == ("stock", "capital")
    [line] = [one.getMessage() for one in caplog.records if "graph (" in one.getMessage()]
    reason = "the fused graph does not work: The bundle does not work on this machine"
    assert line.startswith(f"the model fillmask-minilm-en has the stock graph ({reason}")


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (missing, "fillmask-native is not installed"),
        (other_version, "fillmask-native must have version 1 of the operators (got version 2)"),
        (slow_cpu, "this CPU has no instructions for which they are faster"),
        (
            damaged_package,
            "fillmask-native cannot be loaded: half of a file; remove it or install it again",
        ),
        (no_fused_graph, "the bundle has no fused graph"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_choice_of_the_stock_graph(
    harm: Callable[[pytest.MonkeyPatch, Path], None],
    reason: str,
    any_cpu: None,
    bundle: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert choose_graph(read_bundle(bundle), "auto").kind == "fused"
    harm(monkeypatch, bundle)
    choice = choose_graph(read_bundle(bundle), "auto")
    assert (choice.kind, choice.reason) == ("stock", reason)


def test_a_setting_turns_the_operators_off(any_cpu: None) -> None:
    choice = choose_graph(read_bundle(default_bundle_path()), "off")
    assert (choice.kind, choice.reason) == ("stock", "native is off")


def test_a_damaged_fused_graph_ends_the_start(bundle: Path) -> None:
    file = bundle / "fused.onnx"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(BundleError, match=r"the SHA-256 of fused\.onnx differs"):
        read_bundle(bundle)


def test_an_export_takes_slow_operators(any_cpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # They only have to compute the golden results, and the bundle may run on another CPU.
    monkeypatch.setattr(fillmask_native, "is_fast", lambda: False)
    found = native_operators.find_operators(fillmask_native.OPERATORS_VERSION, fast=False)
    assert found.library == fillmask_native.LIBRARY
