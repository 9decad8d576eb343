"""Golden prompts and the tolerance of their check."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fillmask.bundles.bundle import read_bundle
from fillmask.bundles.golden import GoldenFill
from fillmask.engine.batcher import Batcher
from fillmask.engine.runtime import Runtime
from fillmask.errors import BundleError
from fillmask.parameters.fill_mask import FillOptions
from fillmask.registry.verification.golden import GoldenTolerance, check_golden_prompts
from fillmask.results.fills import Fill
from fillmask.tasks.fill_mask.pipeline import FillMaskPipeline
from fillmask.tokenization.tokenizer import Tokenizer
from tests.service.conftest import EditBundle
from tests.service.tiny import MAX_TOKENS, VOCABULARY, Tiny

FIGURES = {"mean_log_prob_difference": 0.03, "p99_log_prob_difference": 0.12}


def tolerance(edit_bundle: EditBundle, **changes: Any) -> GoldenTolerance:
    """Return the tolerance of the tiny bundle with these changes.

    The tolerance of the mean difference depends on the number of masks in the golden prompts. The
    golden prompts of the tiny bundle have three masks.
    """
    return GoldenTolerance.of(read_bundle(edit_bundle(lambda bundle: bundle.update(changes))))


def test_fp32_keeps_the_tolerance_it_names(edit_bundle: EditBundle) -> None:
    found = tolerance(edit_bundle, verification={"int8": FIGURES})
    assert found == GoldenTolerance(mean=1e-4, largest=1e-4)


def test_int8_is_bound_by_its_distance_from_fp32(edit_bundle: EditBundle) -> None:
    # Results in int8 meet the bundle's tolerance only on the same kind of CPU.
    found = tolerance(edit_bundle, precision="int8", verification={"int8": FIGURES})
    assert found.mean == pytest.approx(2**0.5 * (1 + 2 / 3**0.5) * 0.03)
    assert found.largest == pytest.approx(4 * 0.12)


def test_a_larger_tolerance_that_int8_names_holds(edit_bundle: EditBundle) -> None:
    # The tolerance bounds the largest difference. The int8 figures bound the mean difference.
    golden = read_golden(edit_bundle) | {"log_prob_tolerance": 0.6}
    found = tolerance(edit_bundle, precision="int8", verification={"int8": FIGURES}, golden=golden)
    assert found.largest == 0.6
    assert found.mean < 0.1


def read_golden(edit_bundle: EditBundle) -> dict[str, Any]:
    found: dict[str, Any] = {}
    edit_bundle(lambda bundle: found.update(bundle["golden"]))
    return found


def test_int8_without_figures_keeps_the_tolerance_it_names(edit_bundle: EditBundle) -> None:
    # Early versions of the export wrote no figures for int8.
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
def test_figures_that_are_not_numbers_are_rejected(
    figures: object, message: str, edit_bundle: EditBundle
) -> None:
    with pytest.raises(BundleError, match=message):
        tolerance(edit_bundle, precision="int8", verification={"int8": figures})


def use_case(tokenizer: Tokenizer, batcher: Batcher) -> FillMaskPipeline:
    """Return a pipeline that fills the golden prompts."""
    return FillMaskPipeline(
        tokenizer,
        batcher,
        max_tokens=MAX_TOKENS,
        vocab_size=len(VOCABULARY),
        max_masks=32,
        max_passes=1,
    )


async def check_bundle(path: Path) -> None:
    """Read the bundle and check its golden prompts."""
    bundle = read_bundle(path)
    tokenizer = Tokenizer.from_bundle(bundle)
    batcher = Batcher(Runtime(bundle.model_path).run, 1, 64, 1000, 1000, 10, pytest.fail)
    try:
        await check_golden_prompts(bundle, use_case(tokenizer, batcher))
    finally:
        await batcher.close()


async def test_good_bundle(tiny: Tiny) -> None:
    # The oracle computes the expected fills in float64.
    await check_bundle(tiny.path)


def first_fills(bundle: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the expected fills of the only mask in the first golden prompt."""
    fills: list[dict[str, Any]] = bundle["golden"]["prompts"][0]["fills"][0]
    return fills


def shift(bundle: dict[str, Any], by: float) -> None:
    """Add a number to the expected log-probability of the third fill in the first golden prompt."""
    first_fills(bundle)[2]["log_prob"] += by


async def test_other_log_prob_is_rejected(edit_bundle: EditBundle) -> None:
    path = edit_bundle(lambda bundle: shift(bundle, 0.01))
    with pytest.raises(BundleError, match=r"golden prompt 0, mask 0 must match .* of 0\.01\)"):
        await check_bundle(path)


async def test_difference_within_the_tolerance_is_accepted(edit_bundle: EditBundle) -> None:
    # Other CPUs round results differently.
    await check_bundle(edit_bundle(lambda bundle: shift(bundle, 5e-5)))


def in_int8(bundle: dict[str, Any], mean: float = 0.03, p99: float = 0.1) -> None:
    """Mark the bundle as int8, with figures for its differences from fp32."""
    figures = {"mean_log_prob_difference": mean, "p99_log_prob_difference": p99}
    bundle.update(precision="int8", verification={"int8": figures})


def shift_all(bundle: dict[str, Any], by: float) -> None:
    """Raise and lower the expected log-probabilities of fills alternately."""
    for prompt in bundle["golden"]["prompts"]:
        for mask in prompt["fills"]:
            for place, fill in enumerate(mask):
                fill["log_prob"] += by if place % 2 else -by


async def test_int8_may_be_rounded_differently(edit_bundle: EditBundle) -> None:
    # Differences on another CPU may be as large as between two int8 roundings of one model.
    def change(bundle: dict[str, Any]) -> None:
        in_int8(bundle)
        shift_all(bundle, 0.04)
        shift(bundle, 0.3)

    await check_bundle(edit_bundle(change))


async def test_int8_that_differs_everywhere_is_rejected(edit_bundle: EditBundle) -> None:
    # Each difference is small enough, but their mean is too large.
    def change(bundle: dict[str, Any]) -> None:
        in_int8(bundle)
        shift_all(bundle, 0.1)

    message = r"to 0\.091 nats on average \(got a mean difference of 0\.1, tokens: 15\)"
    with pytest.raises(BundleError, match=message):
        await check_bundle(edit_bundle(change))


async def test_int8_with_one_answer_far_off_is_rejected(edit_bundle: EditBundle) -> None:
    # The bound is four times the 99th percentile of the differences between int8 and fp32.
    def change(bundle: dict[str, Any]) -> None:
        in_int8(bundle)
        shift(bundle, 0.45)

    with pytest.raises(BundleError, match=r"golden prompt 0, mask 0 .* to 0\.4 nats .* of 0\.45\)"):
        await check_bundle(edit_bundle(change))


async def actual_fills(path: Path, top_k: int) -> Sequence[Fill]:
    """Return this machine's fills of the only mask in the first golden prompt."""
    bundle = read_bundle(path)
    batcher = Batcher(Runtime(bundle.model_path).run, 1, 64, 1000, 1000, 10, pytest.fail)
    try:
        pipeline = use_case(Tokenizer.from_bundle(bundle), batcher)
        prompt = bundle.golden.prompts[0].text
        return (await pipeline.fill([prompt], FillOptions(top_k=top_k))).fills[0][0]
    finally:
        await batcher.close()


async def test_tokens_may_change_places_within_the_tolerance(
    tiny: Tiny, edit_bundle: EditBundle
) -> None:
    # The sixth fill may replace the fifth if their difference is within the tolerance of int8.
    *_, fifth, sixth = await actual_fills(tiny.path, 6)
    assert 0 < math.log(fifth.score / sixth.score) < 0.4

    def change(bundle: dict[str, Any]) -> None:
        in_int8(bundle)
        first_fills(bundle)[4].update(token=sixth.token)

    await check_bundle(edit_bundle(change))


@pytest.mark.parametrize(
    ("rank", "message"),
    [(10, "must match the bundle's log-probability of token"), (11, "has the tokens")],
)
async def test_twice_as_many_fills_are_compared(
    rank: int, message: str, tiny: Tiny, edit_bundle: EditBundle
) -> None:
    # If the bundle has five fills of a mask, the check reads the model's ten best fills.
    token = (await actual_fills(tiny.path, rank))[-1].token
    path = edit_bundle(lambda bundle: first_fills(bundle)[0].update(token=token))
    with pytest.raises(BundleError, match=f"golden prompt 0, mask 0 {message}"):
        await check_bundle(path)


async def test_fills_may_be_more_than_half_of_the_tokens(
    tiny: Tiny, edit_bundle: EditBundle
) -> None:
    fills = await actual_fills(tiny.path, 30)

    def change(bundle: dict[str, Any]) -> None:
        expected = [{"token": fill.token, "log_prob": math.log(fill.score)} for fill in fills]
        bundle["golden"]["prompts"][0]["fills"] = [expected]

    await check_bundle(edit_bundle(change))


@pytest.mark.parametrize("others_by", [0, 0.15])
async def test_unlisted_token_with_low_expectation_has_no_difference(
    others_by: float, tiny: Tiny, edit_bundle: EditBundle
) -> None:
    # An unlisted token neither adds to the mean nor hides the differences of other fills.
    token = (await actual_fills(tiny.path, 11))[-1].token

    def change(bundle: dict[str, Any]) -> None:
        in_int8(bundle)
        shift_all(bundle, others_by)
        first_fills(bundle)[4].update(token=token, log_prob=-50)

    if others_by:
        with pytest.raises(BundleError, match=r"on average \(.* of 0\.14,"):
            await check_bundle(edit_bundle(change))
    else:
        await check_bundle(edit_bundle(change))


async def test_other_token_is_rejected(edit_bundle: EditBundle) -> None:
    def change(bundle: dict[str, Any]) -> None:
        first_fills(bundle)[0]["token"] = 0

    with pytest.raises(BundleError, match=r"golden prompt 0, mask 0 has the tokens \[\d+, .*\[0, "):
        await check_bundle(edit_bundle(change))


async def test_fewer_masks_are_rejected(edit_bundle: EditBundle) -> None:
    path = edit_bundle(lambda bundle: bundle["golden"]["prompts"][1]["fills"].pop())
    with pytest.raises(
        BundleError, match=r"golden prompt 1 must have one list .*, 2 in total \(got 1\)"
    ):
        await check_bundle(path)


async def test_prompt_that_cannot_be_filled_is_rejected(edit_bundle: EditBundle) -> None:
    path = edit_bundle(lambda bundle: bundle["golden"]["prompts"][0].update(text="no mask"))
    with pytest.raises(
        BundleError, match=r"the model cannot fill golden prompt 0 \(inputs has no mask"
    ):
        await check_bundle(path)


async def test_nan_is_rejected(tiny: Tiny) -> None:
    # NaN is neither above nor below the tolerance.
    bundle = read_bundle(tiny.path)
    [prompt, *_] = bundle.golden.prompts
    fills = (
        (
            GoldenFill.model_construct(token=prompt.fills[0][0].token, log_prob=math.nan),
            *prompt.fills[0][1:],
        ),
    )
    broken = prompt.model_copy(update={"fills": fills})
    golden = bundle.golden.model_copy(update={"prompts": (broken,)})

    tokenizer = Tokenizer(bundle.tokenizer_path.read_bytes(), "[MASK]", 4, bundle.special_token_ids)
    batcher = Batcher(Runtime(bundle.model_path).run, 1, 64, 1000, 1000, 10, pytest.fail)
    try:
        broken_bundle = bundle.model_copy(update={"golden": golden})
        with pytest.raises(BundleError, match=r"\(got a difference of nan\)"):
            await check_golden_prompts(broken_bundle, use_case(tokenizer, batcher))
    finally:
        await batcher.close()
