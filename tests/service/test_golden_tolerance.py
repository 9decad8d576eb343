"""Bounds of the golden check: named by the bundle in fp32, derived from its figures in int8."""

from typing import Any

import pytest

from service.bundles.bundle import read_bundle
from service.errors import BundleError
from service.golden_tolerance import GoldenTolerance
from tests.service.conftest import EditBundle

FIGURES = {"mean_log_prob_difference": 0.03, "p99_log_prob_difference": 0.12}


def tolerance(edit_bundle: EditBundle, **changes: Any) -> GoldenTolerance:
    """The bounds for the tiny bundle, changed; it has three masks."""
    return GoldenTolerance.of(read_bundle(edit_bundle(lambda bundle: bundle.update(changes))))


def test_fp32_keeps_the_tolerance_it_names(edit_bundle: EditBundle) -> None:
    """Figures of int8 mean nothing to it."""
    found = tolerance(edit_bundle, verification={"int8": FIGURES})
    assert found == GoldenTolerance(mean=1e-4, largest=1e-4)


def test_int8_is_bound_by_its_distance_from_fp32(edit_bundle: EditBundle) -> None:
    """Also where the bundle names a tolerance that only CPUs of one kind keep."""
    found = tolerance(edit_bundle, precision="int8", verification={"int8": FIGURES})
    assert found.mean == pytest.approx(2**0.5 * (1 + 2 / 3**0.5) * 0.03)
    assert found.largest == pytest.approx(4 * 0.12)


def test_a_larger_tolerance_that_int8_names_holds(edit_bundle: EditBundle) -> None:
    """For the largest difference; the mean is bound by the figures."""
    golden = read_golden(edit_bundle) | {"log_prob_tolerance": 0.6}
    found = tolerance(edit_bundle, precision="int8", verification={"int8": FIGURES}, golden=golden)
    assert found.largest == 0.6
    assert found.mean < 0.1


def read_golden(edit_bundle: EditBundle) -> dict[str, Any]:
    """The golden part of the tiny bundle."""
    found: dict[str, Any] = {}
    edit_bundle(lambda bundle: found.update(bundle["golden"]))
    return found


def test_int8_without_figures_keeps_the_tolerance_it_names(edit_bundle: EditBundle) -> None:
    """An early export wrote none."""
    found = tolerance(edit_bundle, precision="int8")
    assert found == GoldenTolerance(mean=1e-4, largest=1e-4)


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({}, r"verification\.int8\.mean_log_prob_difference is missing"),
        (FIGURES | {"p99_log_prob_difference": "small"}, r"p99_\w+ must be a number"),
        ([], r"verification\.int8 must be an object"),
    ],
)
def test_figures_that_are_no_numbers_are_refused(
    figures: object, message: str, edit_bundle: EditBundle
) -> None:
    """The field is named."""
    with pytest.raises(BundleError, match=message):
        tolerance(edit_bundle, precision="int8", verification={"int8": figures})
