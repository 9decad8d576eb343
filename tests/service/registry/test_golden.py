"""Golden prompts: a bundle that answers otherwise than where it was made does not start."""

import asyncio
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.bundles.bundle import GoldenFill, read_bundle
from service.engine.batcher import Batcher
from service.engine.runtime import Runtime
from service.errors import BundleError
from service.registry.golden import GoldenTolerance, check_golden_prompts
from service.tasks.fill_mask import FillMaskPipeline
from service.tasks.options import FillOptions
from service.tasks.results import Fill
from service.tokenization.tokenizer import Tokenizer
from tests.service.conftest import EditBundle
from tests.service.tiny import MAX_TOKENS, VOCABULARY, Tiny

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


def use_case(tokenizer: Tokenizer, batcher: Batcher) -> FillMaskPipeline:
    """What the prompts are replayed by."""
    return FillMaskPipeline(
        tokenizer,
        batcher,
        max_tokens=MAX_TOKENS,
        vocab_size=len(VOCABULARY),
        max_masks=32,
        max_passes=1,
    )


def replay_bundle(path: Path) -> None:
    """Read the bundle and replay its prompts."""

    async def play() -> None:
        bundle = read_bundle(path)
        tokenizer = Tokenizer.of(bundle)
        batcher = Batcher(Runtime(bundle.model_path).run, 1, 64, 1000, 1000, 10, pytest.fail)
        try:
            await check_golden_prompts(bundle, use_case(tokenizer, batcher))
        finally:
            await batcher.close()

    asyncio.run(play())


def test_a_good_bundle(tiny: Tiny) -> None:
    """The answers that were worked out in float64 are found again."""
    replay_bundle(tiny.path)


def first_fills(bundle: dict[str, Any]) -> list[dict[str, Any]]:
    """The expected fills of the first prompt's only mask."""
    fills: list[dict[str, Any]] = bundle["golden"]["prompts"][0]["fills"][0]
    return fills


def shift(bundle: dict[str, Any], by: float) -> None:
    """Expect another log-probability of the third fill."""
    first_fills(bundle)[2]["log_prob"] += by


def test_another_log_prob_is_refused(edit_bundle: EditBundle) -> None:
    """The prompt, the token and the difference are named."""
    path = edit_bundle(lambda bundle: shift(bundle, 0.01))
    with pytest.raises(BundleError, match=r"golden prompt 0, mask 0 differs by 0.01 in the log-"):
        replay_bundle(path)


def test_a_difference_within_the_tolerance_is_fine(edit_bundle: EditBundle) -> None:
    """Another CPU rounds otherwise."""
    replay_bundle(edit_bundle(lambda bundle: shift(bundle, 5e-5)))


def in_int8(bundle: dict[str, Any], mean: float = 0.03, p99: float = 0.1) -> None:
    """Have the bundle say that it is in int8, and how far that is from fp32."""
    figures = {"mean_log_prob_difference": mean, "p99_log_prob_difference": p99}
    bundle.update(precision="int8", verification={"int8": figures})


def shift_all(bundle: dict[str, Any], by: float) -> None:
    """Expect other log-probabilities of all fills, by turns higher and lower."""
    for prompt in bundle["golden"]["prompts"]:
        for mask in prompt["fills"]:
            for place, fill in enumerate(mask):
                fill["log_prob"] += by if place % 2 else -by


def test_int8_may_be_rounded_otherwise(edit_bundle: EditBundle) -> None:
    """Differences on another CPU may be as large as between two roundings of one model."""

    def change(bundle: dict[str, Any]) -> None:
        in_int8(bundle)
        shift_all(bundle, 0.04)
        shift(bundle, 0.3)

    replay_bundle(edit_bundle(change))


def test_int8_that_differs_everywhere_is_refused(edit_bundle: EditBundle) -> None:
    """The mean shows what no single difference does."""

    def change(bundle: dict[str, Any]) -> None:
        in_int8(bundle)
        shift_all(bundle, 0.1)

    message = "differ by 0.1 on average in the log-probabilities of 15 tokens, and .* only 0.09"
    with pytest.raises(BundleError, match=message):
        replay_bundle(edit_bundle(change))


def test_int8_with_one_answer_far_off_is_refused(edit_bundle: EditBundle) -> None:
    """A single fill may differ by four times the 99th percentile of what int8 costs."""

    def change(bundle: dict[str, Any]) -> None:
        in_int8(bundle)
        shift(bundle, 0.45)

    with pytest.raises(BundleError, match=r"golden prompt 0, mask 0 differs by 0.45 .* is 0\.4\."):
        replay_bundle(edit_bundle(change))


def test_tokens_that_change_places_are_found(edit_bundle: EditBundle) -> None:
    """The sixth fill may stand for the fifth where both are as close as int8 rounds."""
    path = edit_bundle(in_int8)
    bundle = read_bundle(path)

    async def ask() -> list[Fill]:
        tokenizer = Tokenizer.of(bundle)
        batcher = Batcher(Runtime(bundle.model_path).run, 1, 64, 1000, 1000, 10, pytest.fail)
        try:
            options = FillOptions(top_k=6)
            prompt = bundle.golden.prompts[0].text
            answer = await use_case(tokenizer, batcher).fill([prompt], options)
        finally:
            await batcher.close()
        return list(answer.fills[0][0])

    fifth, sixth = asyncio.run(ask())[4:]
    assert 0 < math.log(fifth.score / sixth.score) < 0.4

    def change(bundle: dict[str, Any]) -> None:
        first_fills(bundle)[4].update(token=sixth.token)

    description = json.loads((path / "bundle.json").read_text())
    change(description)
    (path / "bundle.json").write_text(json.dumps(description))
    replay_bundle(path)


def test_another_token_is_refused(edit_bundle: EditBundle) -> None:
    """A fill that is not among the best here is named with what is."""

    def change(bundle: dict[str, Any]) -> None:
        first_fills(bundle)[0]["token"] = 0

    with pytest.raises(BundleError, match=r"golden prompt 0, mask 0 has the tokens \[\d+, .*\[0, "):
        replay_bundle(edit_bundle(change))


def test_fewer_masks_are_refused(edit_bundle: EditBundle) -> None:
    """Every mask of a prompt has its answer."""
    path = edit_bundle(lambda bundle: bundle["golden"]["prompts"][1]["fills"].pop())
    with pytest.raises(BundleError, match=r"golden prompt 1 has 2 masks, but .* fills for 1"):
        replay_bundle(path)


def test_a_prompt_that_cannot_be_filled_is_refused(edit_bundle: EditBundle) -> None:
    """A prompt without a mask is told with the reason."""
    path = edit_bundle(lambda bundle: bundle["golden"]["prompts"][0].update(text="no mask"))
    with pytest.raises(BundleError, match=r"golden prompt 0 cannot be filled: inputs has no mask"):
        replay_bundle(path)


def test_nan_is_refused(tiny: Tiny) -> None:
    """A comparison with NaN does not pass by being neither more nor less."""
    bundle = read_bundle(tiny.path)
    [prompt, *_] = bundle.golden.prompts
    fills = ((GoldenFill(prompt.fills[0][0].token, float("nan")), *prompt.fills[0][1:]),)
    golden = replace(bundle.golden, prompts=(replace(prompt, fills=fills),))

    async def play() -> None:
        tokenizer = Tokenizer(
            bundle.tokenizer_path.read_bytes(), "[MASK]", 4, bundle.special_token_ids
        )
        batcher = Batcher(Runtime(bundle.model_path).run, 1, 64, 1000, 1000, 10, pytest.fail)
        try:
            await check_golden_prompts(replace(bundle, golden=golden), use_case(tokenizer, batcher))
        finally:
            await batcher.close()

    with pytest.raises(BundleError, match="differs by nan"):
        asyncio.run(play())
