"""Replay a bundle's golden prompts: does the model answer here as it did where it was made?"""

import math
from collections.abc import Sequence

from service.bundle import Bundle, GoldenFill
from service.errors import BundleError, FillMaskError
from service.fill_mask import FillMask
from service.fill_options import FillOptions
from service.ranking import Fill


async def replay(bundle: Bundle, fill_mask: FillMask) -> None:
    """Fill every golden prompt by the way requests take, and compare.

    The tokens must be the same; their log-probabilities may differ by the bundle's tolerance,
    and so may the order of tokens that are as close as that.

    Raises:
        BundleError: an answer differs; names the prompt and the difference.
    """
    for index, prompt in enumerate(bundle.golden.prompts):
        where = f"golden prompt {index}"
        top_k = max(map(len, prompt.fills), default=1)
        try:
            answer = await fill_mask.fill([prompt.text], FillOptions(top_k=top_k))
        except FillMaskError as error:
            raise _differs(f"{where} is not answered: {error.text.rstrip('.')}") from error
        [masks] = answer.fills
        if len(masks) != len(prompt.fills):
            raise _differs(f"{where} has {len(masks)} masks and answers for {len(prompt.fills)}")
        for mask, (expected, actual) in enumerate(zip(prompt.fills, masks, strict=True)):
            _compare(
                f"{where}, mask {mask}",
                expected,
                actual[: len(expected)],
                bundle.golden.log_prob_tolerance,
            )


def _compare(
    where: str, expected: tuple[GoldenFill, ...], actual: Sequence[Fill], tolerance: float
) -> None:
    log_probs = {fill.token: _log(fill.score) for fill in actual}
    if log_probs.keys() != {fill.token for fill in expected}:
        tokens = [fill.token for fill in expected]
        raise _differs(f"{where} has the tokens {list(log_probs)} here and {tokens} in the bundle")
    for fill in expected:
        difference = abs(log_probs[fill.token] - fill.log_prob)
        if not difference <= tolerance:  # so that NaN is refused as well
            raise _differs(
                f"{where} differs by {difference:.2g} in the log-probability of token "
                f"{fill.token}, and the tolerance is {tolerance:.2g}"
            )


def _log(probability: float) -> float:
    return math.log(probability) if probability else -math.inf


def _differs(reason: str) -> BundleError:
    return BundleError(f"The bundle does not work on this machine: {reason}.")
