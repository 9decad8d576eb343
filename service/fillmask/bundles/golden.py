"""Golden prompts and golden texts of bundle.json, with the expected results."""

from typing import Annotated

from pydantic import Field

from fillmask.bundles.validation import FilledList, List, Strict, TokenId


class GoldenFill(Strict):
    """A token and its natural log-probability over the entire vocabulary."""

    token: TokenId
    log_prob: float


class GoldenPrompt(Strict):
    """A text or a pair with the expected fills of each of its masks, best first."""

    text: str
    text_pair: str | None = None
    fills: List[FilledList[GoldenFill]]


class GoldenLabels(Strict):
    """A text or a pair with the expected logit of each label."""

    text: str
    text_pair: str | None = None
    logits: FilledList[float]


class GoldenTokenLabels(Strict):
    """A text or a pair with the best label of each token and its log-probability."""

    text: str
    text_pair: str | None = None
    labels: FilledList[TokenId]
    log_probs: FilledList[float]


class GoldenWeight(Strict):
    token: TokenId
    weight: float


class GoldenVector(Strict):
    """A text with the largest weights of its sparse vector."""

    text: str
    weights: FilledList[GoldenWeight]


class Golden(Strict):
    """Golden prompts and golden texts, whose results must match within tolerances.

    The task fill-mask needs `prompts` and `log_prob_tolerance`, text-classification needs `labels`
    and `logit_tolerance`, token-classification needs `token_labels` and `label_tolerance`, and
    sparse needs `vectors` and `weight_tolerance`.
    """

    log_prob_tolerance: Annotated[float, Field(gt=0)] | None = None
    prompts: List[GoldenPrompt]
    logit_tolerance: Annotated[float, Field(gt=0)] | None = None
    labels: List[GoldenLabels] = ()
    weight_tolerance: Annotated[float, Field(gt=0)] | None = None
    vectors: List[GoldenVector] = ()
    label_tolerance: Annotated[float, Field(gt=0)] | None = None
    token_labels: List[GoldenTokenLabels] = ()
