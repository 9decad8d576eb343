"""Bundles with labels in the service: loading, golden check, readiness and lookup by task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from fillmask.bundles.bundle import read_bundle
from fillmask.errors import BundleError
from fillmask.models.loader import load_model
from fillmask.models.registry import ModelRegistry
from fillmask.models.served_model import ServedModel
from fillmask.observability.metrics import Metrics
from fillmask.settings import Settings
from fillmask.tasks.classify.golden import logit_tolerance
from tests.broken_bundles import copy_bundle, edit_description
from tests.export.label_bundles import TASKS, Kind, label_checkpoint, write_label_bundle


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with one fp32 bundle of each kind. Each bundle has the name of its kind."""
    directory = tmp_path_factory.mktemp("bundles")
    for kind in TASKS:
        write_label_bundle(directory / kind, label_checkpoint(kind))
        edit_description(directory / kind, lambda b, name=kind: b.update(name=name))
    return directory


@pytest.fixture
def copy(bundles: Path, tmp_path: Path) -> Path:
    """Copy of the bundle with both tasks."""
    return copy_bundle(tmp_path / "copy", bundles / "both")


@asynccontextmanager
async def loaded(path: Path) -> AsyncIterator[ServedModel]:
    """Load a model, yield it, and close it at the end."""
    model = await load_model(Settings(threads=1), pytest.fail, path)
    try:
        yield model
    finally:
        await model.aclose()


@pytest.mark.parametrize("kind", list(TASKS))
async def test_a_model_has_the_pipelines_of_its_tasks(kind: Kind, bundles: Path) -> None:
    async with loaded(bundles / kind) as model:
        assert list(model.info.tasks) == TASKS[kind]
        assert model.info.pairs is True
        fills, labels = kind != "labels", kind != "fills"
        assert list(model.pipelines) == ["fill-mask", "score"] * fills + ["classify"] * labels
        assert model.info.labels == (("bad", "good", "other") if labels else None)
        assert model.info.problem_type == ("single_label_classification" if labels else None)


def _shift_logit(by: float) -> Callable[[dict[str, Any]], None]:
    def change(bundle: dict[str, Any]) -> None:
        bundle["golden"]["labels"][2]["logits"][1] += by

    return change


def _swap_pair(bundle: dict[str, Any]) -> None:
    [pair, *_] = [one for one in bundle["golden"]["labels"] if "text_pair" in one]
    pair["text"], pair["text_pair"] = pair["text_pair"], pair["text"]


def _lengthen(bundle: dict[str, Any]) -> None:
    bundle["golden"]["labels"][0]["text"] = "cat " * 99


def _other_pooling(bundle: dict[str, Any]) -> None:
    bundle["classification"]["pooling"] = "mean"


def _only_fills(bundle: dict[str, Any]) -> None:
    bundle |= {"tasks": ["fill-mask"], "classification": None}
    bundle["golden"]["labels"] = []


def _another_label(bundle: dict[str, Any]) -> None:
    bundle["classification"]["labels"].append("more")
    for one in bundle["golden"]["labels"]:
        one["logits"].append(0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            _shift_logit(0.05),
            r"golden text 2 must match .* logit of label 1 to .* \(got a difference of 0\.05\)",
        ),
        (_swap_pair, "golden text 1 must match the bundle's logit of label"),
        (_lengthen, r"the model cannot classify golden text 0 \(inputs must have at most"),
        (_other_pooling, r"pooling must be first, as in model\.onnx \(got mean\)"),
        (_another_label, r"golden text 0 must have as many logits as in the bundle, 4 \(got 3\)"),
        (
            _only_fills,
            r"tasks must be fill-mask, text-classification, as in model\.onnx \(got f",
        ),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
async def test_a_wrong_description_stops_the_start(
    change: Callable[[dict[str, Any]], None], message: str, copy: Path
) -> None:
    edit_description(copy, change)
    with pytest.raises(BundleError, match=message):
        async with loaded(copy):
            pass


async def test_a_small_difference_of_logits_is_accepted(copy: Path) -> None:
    # Other CPUs round results differently.
    edit_description(copy, _shift_logit(1e-3))
    async with loaded(copy):
        pass


@pytest.fixture(scope="module")
def int8_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bundle in int8 with both tasks."""
    path = tmp_path_factory.mktemp("int8") / "both"
    write_label_bundle(path, label_checkpoint("both"), "int8")
    return path


def test_bounds_of_int8_labels_come_from_the_figures(int8_bundle: Path) -> None:
    # The bound on the mean allows for the rounding of two CPUs and for few golden texts.
    bundle = read_bundle(int8_bundle)
    figures = bundle.verification["labels"]["int8"]
    found = logit_tolerance(bundle)
    texts = len(bundle.golden.labels)
    mean = 2**0.5 * (1 + 4 * 1.2 / texts**0.5) * figures["mean_logit_difference"]
    assert found.mean == pytest.approx(mean)
    assert found.largest == 4 * figures["p99_logit_difference"]


async def test_a_small_error_in_every_logit_is_rejected(int8_bundle: Path, tmp_path: Path) -> None:
    # Each difference is below its bound, but their mean is above the bound for the mean.
    path = copy_bundle(tmp_path / "copy", int8_bundle)
    bundle = read_bundle(path)
    bounds = logit_tolerance(bundle)
    by = (bounds.mean + bounds.largest) / 2
    assert bounds.mean < by < bounds.largest

    def shift(description: dict[str, Any]) -> None:
        for one in description["golden"]["labels"]:
            one["logits"] = [logit + by for logit in one["logits"]]

    edit_description(path, shift)
    with pytest.raises(
        BundleError, match=r"golden texts must match .* on average .*, logits: \d+\)"
    ):
        async with loaded(path):
            pass


async def test_without_a_name_the_default_model_or_the_first_with_the_task(bundles: Path) -> None:
    settings = Settings(bundle=bundles, model="labels", threads=1)
    models = ModelRegistry(settings, pytest.fail, lambda: None, Metrics())
    await models.load_all()
    try:
        assert models.get().name == "labels"
        assert models.get(task="text-classification").name == "labels"
        assert models.get(task="fill-mask").name == "both"
    finally:
        await models.close()
