"""Golden prompts and the tolerance of their check."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fillmask.bundles.bundle import Bundle, read_bundle
from fillmask.bundles.golden import GoldenFill
from fillmask.engine.batcher import Batcher
from fillmask.engine.runtime import Runtime
from fillmask.errors import BundleError
from fillmask.tasks.fill_mask.golden import check_golden_prompts, fill_tolerance
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.fill_mask.pipeline import FillMaskPipeline
from fillmask.tasks.fill_mask.results import Fill
from fillmask.tasks.golden import GoldenTolerance
from fillmask.tasks.result import accepted
from fillmask.tokenization.tokenizer import Tokenizer
from tests.service.conftest import EditBundle
from tests.service.tiny import MAX_TOKENS, VOCABULARY, Tiny

FIGURES = {"mean_log_prob_difference": 0.03, "p99_log_prob_difference": 0.12}
# three golden masks
OF_INT8 = GoldenTolerance(mean=2**0.5 * (1 + 2 / 3**0.5) * 0.03, largest=4 * 0.12)
NAMED = GoldenTolerance(mean=1e-4, largest=1e-4)


@pytest.mark.parametrize(
    ("precision", "verification", "named", "expected"),
    [
        ("fp32", {"int8": FIGURES}, 1e-4, NAMED),
        # results in int8 meet the bundle's own tolerance only on the same kind of CPU
        ("int8", {"int8": FIGURES}, 1e-4, OF_INT8),
        ("int8", {"int8": FIGURES}, 0.6, GoldenTolerance(OF_INT8.mean, 0.6)),
        ("int8", {}, 1e-4, NAMED),  # early versions of the export wrote no figures for int8
    ],
)
def test_tolerance(
    precision: str,
    verification: object,
    named: float,
    expected: GoldenTolerance,
    edit_bundle: EditBundle,
) -> None:
    def change(bundle: dict[str, Any]) -> None:
        bundle.update(precision=precision, verification=verification)
        bundle["golden"]["log_prob_tolerance"] = named

    found = fill_tolerance(read_bundle(edit_bundle(change)))
    assert (found.mean, found.largest) == pytest.approx((expected.mean, expected.largest))


async def check_bundle(bundle: Bundle, top_k: int | None = None) -> Sequence[Fill]:
    """Check the golden prompts of a bundle.

    Args:
        top_k: number of this machine's fills of the first golden prompt to return instead.
    """
    batcher = Batcher(Runtime(bundle.model_path).run, 1, 64, 1000, 1000, 10, pytest.fail)
    pipeline = FillMaskPipeline(
        Tokenizer.from_bundle(bundle),
        batcher,
        max_tokens=MAX_TOKENS,
        vocab_size=len(VOCABULARY),
        max_masks=32,
        max_passes=1,
    )
    try:
        if top_k is None:
            await check_golden_prompts(bundle, pipeline)
            return []
        prompt = bundle.golden.prompts[0].text
        [found] = accepted(await pipeline.compute([prompt], [FillMaskParameters(top_k=top_k)]))
        return found.masks[0]
    finally:
        await batcher.close()


def first_fills(bundle: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the expected fills of the only mask in the first golden prompt."""
    fills: list[dict[str, Any]] = bundle["golden"]["prompts"][0]["fills"][0]
    return fills


def shift(by: float) -> Callable[[dict[str, Any]], None]:
    """Return a change of the expected log-probability of a fill in the first golden prompt."""

    def change(bundle: dict[str, Any]) -> None:
        first_fills(bundle)[2]["log_prob"] += by

    return change


def in_int8(all_by: float = 0, one_by: float = 0) -> Callable[[dict[str, Any]], None]:
    """Return a change to an int8 bundle that raises and lowers its log-probabilities in turn."""

    def change(bundle: dict[str, Any]) -> None:
        figures = {"mean_log_prob_difference": 0.03, "p99_log_prob_difference": 0.1}
        bundle.update(precision="int8", verification={"int8": figures})
        for prompt in bundle["golden"]["prompts"]:
            for mask in prompt["fills"]:
                for place, fill in enumerate(mask):
                    fill["log_prob"] += all_by if place % 2 else -all_by
        shift(one_by)(bundle)

    return change


def fill_with_token_0(bundle: dict[str, Any]) -> None:
    first_fills(bundle)[0]["token"] = 0


def remove_a_mask(bundle: dict[str, Any]) -> None:
    bundle["golden"]["prompts"][1]["fills"].pop()


def remove_the_mask_token(bundle: dict[str, Any]) -> None:
    bundle["golden"]["prompts"][0].update(text="no mask")


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,  # the oracle computes the expected fills in float64
        shift(5e-5),  # other CPUs round results differently
        # as large as between two int8 roundings of one model
        in_int8(all_by=0.04, one_by=0.3),
    ],
)
async def test_good_bundle(
    change: Callable[[dict[str, Any]], None], edit_bundle: EditBundle
) -> None:
    await check_bundle(read_bundle(edit_bundle(change)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (shift(0.01), r"golden prompt 0, mask 0 must match .* \(got a difference of 0\.01\)"),
        # each difference is small enough, but their mean is too large
        (
            in_int8(all_by=0.1),
            (
                r"the golden prompts must match the bundle's log-probabilities to 0\.091 nats on "
                r"average \(got a mean difference of 0\.1, tokens: 15\)"
            ),
        ),
        (in_int8(one_by=0.45), r"golden prompt 0, mask 0 .* to 0\.4 nats .* of 0\.45\)"),
        (fill_with_token_0, r"golden prompt 0, mask 0 has the tokens \[\d+, .*\[0, "),
        (remove_a_mask, r"golden prompt 1 must have one list .*, 2 in total \(got 1\)"),
        (
            remove_the_mask_token,
            r"the model cannot fill golden prompt 0 \(inputs has no mask.*\); export the bundle",
        ),
    ],
)
async def test_bad_bundle(
    change: Callable[[dict[str, Any]], None], message: str, edit_bundle: EditBundle
) -> None:
    with pytest.raises(BundleError, match=message):
        await check_bundle(read_bundle(edit_bundle(change)))


def expect_little(bundle: dict[str, Any]) -> None:
    in_int8(all_by=0.15)(bundle)
    first_fills(bundle)[4].update(log_prob=-50)


@pytest.mark.parametrize(
    ("place", "rank", "change", "message"),
    [
        # tokens may change places within the tolerance of int8
        (4, 6, in_int8(), None),
        # if the bundle has five fills of a mask, the check reads the model's ten best fills
        (0, 10, shift(0), "mask 0 must match the bundle's log-probability of token"),
        (0, 11, shift(0), "mask 0 has the tokens"),
        # an unlisted token with a low expectation neither adds to the mean nor hides differences
        (4, 11, expect_little, r"on average \(.* of 0\.14,"),
    ],
)
async def test_another_token_in_place_of_a_fill(
    place: int,
    rank: int,
    change: Callable[[dict[str, Any]], None],
    message: str | None,
    tiny: Tiny,
    edit_bundle: EditBundle,
) -> None:
    token = (await check_bundle(read_bundle(tiny.path), rank))[-1].token

    def edit(bundle: dict[str, Any]) -> None:
        change(bundle)
        first_fills(bundle)[place].update(token=token)

    bundle = read_bundle(edit_bundle(edit))
    if message is None:
        await check_bundle(bundle)
        return
    with pytest.raises(BundleError, match=message):
        await check_bundle(bundle)


async def test_fills_may_be_more_than_half_of_the_tokens(
    tiny: Tiny, edit_bundle: EditBundle
) -> None:
    fills = await check_bundle(read_bundle(tiny.path), 30)

    def change(bundle: dict[str, Any]) -> None:
        expected = [{"token": fill.token, "log_prob": math.log(fill.score)} for fill in fills]
        bundle["golden"]["prompts"][0]["fills"] = [expected]

    await check_bundle(read_bundle(edit_bundle(change)))


async def test_nan_is_rejected(tiny: Tiny) -> None:
    # NaN is neither above nor below the tolerance.
    bundle = read_bundle(tiny.path)
    [prompt, *_] = bundle.golden.prompts
    [first, *others] = prompt.fills[0]
    nan = GoldenFill.model_construct(token=first.token, log_prob=math.nan)
    broken = prompt.model_copy(update={"fills": ((nan, *others),)})
    golden = bundle.golden.model_copy(update={"prompts": (broken,)})
    with pytest.raises(BundleError, match=r"\(got a difference of nan\)"):
        await check_bundle(bundle.model_copy(update={"golden": golden}))
