"""Pydantic models of bundle.json."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from fillmask.bundles.golden import Golden, GoldenLabels, GoldenPrompt
from fillmask.bundles.validation import (
    EXPORT_AGAIN,
    FilledList,
    List,
    Size,
    Strict,
    TokenId,
    check_name,
)
from fillmask.errors import quote

SCHEMA_VERSION = 4
# version 2 has only the task fill-mask and no pairs, version 3 no fused graph
READABLE_VERSIONS = (2, 3, 4)
MODEL_FILE: Final = "model.onnx"
WEIGHTS_FILE: Final = "weights.bin"  # a separate file, which may have more than 2 GB
TOKENIZER_FILE: Final = "tokenizer.json"
FUSED_FILE: Final = "fused.onnx"  # in some bundles
DESCRIPTION_FILE = "bundle.json"
FILES = (MODEL_FILE, WEIGHTS_FILE, TOKENIZER_FILE)

Task = Literal["fill-mask", "text-classification", "token-classification", "sparse"]
ProblemType = Literal["single_label_classification", "multi_label_classification", "regression"]
Pooling = Literal["first", "mean"]
SpecialTokens = Literal["literal", "read", "refuse"]
TruncationSide = Literal["left", "right"]
SparseStrategy = Literal["max", "sum"]
SparseActivation = Literal["relu", "log1p_relu"]


def _remove_constraints(schema: dict[str, Any]) -> None:
    """Remove minimum values and the ban on unknown fields from a schema."""
    schema.pop("additionalProperties", None)
    for field in schema["properties"].values():
        field.pop("minimum", None)


class Architecture(Strict):
    """Sizes of the encoder. The number `parameters` counts a tied table once."""

    # GET /info also returns the sizes. Clients of GET /info must accept fields of later releases.
    model_config = ConfigDict(json_schema_extra=_remove_constraints)

    d_model: Size
    num_layers: Size
    num_heads: Size
    d_ff: Size
    vocab_size: Size
    max_positions: Size
    parameters: Size
    tied: bool


class FileRecord(Strict):
    sha256: str
    bytes: Annotated[int, Field(ge=0)]


class FileRecords(Strict):
    """Size and SHA-256 of each file of a bundle.

    Other file names are invalid, so that no path points outside the directory of the bundle.
    """

    model: FileRecord = Field(alias=MODEL_FILE)
    weights: FileRecord = Field(alias=WEIGHTS_FILE)
    tokenizer: FileRecord = Field(alias=TOKENIZER_FILE)
    fused: FileRecord | None = Field(default=None, alias=FUSED_FILE)


class Classification(Strict):
    """The classification head of a model, with the labels in the order of the logits."""

    labels: FilledList[str]
    problem_type: ProblemType
    pooling: Pooling


class TokenClassification(Strict):
    """The head for labels of tokens, with the labels in the order of the logits."""

    labels: FilledList[str]


class Sparse(Strict):
    """How the logits of a text become a sparse vector.

    `max_active_dims` is the maximum number of dimensions, null for no maximum. `query_weights` has
    one weight per token for queries without a pass, or is null if queries need one.
    """

    pooling: SparseStrategy
    activation: SparseActivation
    max_active_dims: Size | None = None
    query_weights: FilledList[Annotated[float, Field(ge=0)]] | None = None


class PackedWeight(Strict):
    """Place in the file of a weight that only operators read, which have their own copy."""

    offset: Annotated[int, Field(ge=0)]
    bytes: Size


class Fused(Strict):
    """A second graph over the same weights, for machines with the package fillmask-native.

    `operators` is the version of the operators, and `golden` has the results of this graph.
    """

    operators: Size
    packed_weights: List[PackedWeight]
    golden: Golden


class _Figures(Strict):
    """Differences between int8 and fp32 in the verification, which has further figures."""

    model_config = ConfigDict(extra="ignore")


class Int8Figures(_Figures):
    """Differences of log-probabilities, in nats."""

    mean_log_prob_difference: float
    p99_log_prob_difference: float


class LabelInt8Figures(_Figures):
    mean_logit_difference: float
    p99_logit_difference: float


class TokenInt8Figures(Int8Figures):
    """Differences of the log-probabilities of labels of tokens, in nats."""


class VectorInt8Figures(_Figures):
    """Differences of the largest weights of each vector."""

    mean_weight_difference: float
    p99_weight_difference: float


class Description(Strict):
    """Content of bundle.json.

    `max_tokens` includes special tokens. With `pairs`, the model also reads pairs of texts. If
    `token_types` is above 1, the graph has an input for token types. `special_tokens` says how
    texts with special tokens other than the mask are read. Truncation removes tokens at
    `truncation_side`. With `truncates`, sparse vectors truncate by default.
    """

    schema_version: int
    name: Annotated[str, AfterValidator(check_name)]
    license: str
    description: str
    created_with: str
    architecture: Architecture
    max_tokens: Size
    mask_token: str
    mask_token_id: TokenId
    special_token_ids: List[TokenId]
    precision: Literal["fp32", "int8"]
    tasks: FilledList[Task] = ("fill-mask",)
    pairs: bool = False
    token_types: Size = 1
    classification: Classification | None = None
    token_classification: TokenClassification | None = None
    sparse: Sparse | None = None
    special_tokens: SpecialTokens = "literal"
    truncation_side: TruncationSide = "right"
    truncates: bool = False
    files: FileRecords
    verification: dict[str, Any]
    golden: Golden
    fused: Fused | None = None

    @field_validator("schema_version")
    @classmethod
    def _check_version(cls, version: int) -> int:
        if version not in READABLE_VERSIONS:
            allowed = " or ".join(map(str, READABLE_VERSIONS))
            raise ValueError(f"schema_version must be {allowed} (got {version}); {EXPORT_AGAIN}")
        return version

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        sizes = self.architecture
        if self.max_tokens > sizes.max_positions:
            raise ValueError(
                f"max_tokens must be at most architecture.max_positions, {sizes.max_positions} "
                f"(got {self.max_tokens})"
            )
        if self.mask_token_id not in self.special_token_ids:
            raise ValueError(
                f"special_token_ids must contain mask_token_id, {self.mask_token_id} "
                f"(got {list(self.special_token_ids)})"
            )
        if (largest := max(self.special_token_ids)) >= sizes.vocab_size:
            raise ValueError(
                f"special_token_ids must be below architecture.vocab_size, {sizes.vocab_size} "
                f"(got {largest})"
            )
        self._check_pairs()
        self._check_tasks(self.golden, "golden")
        if (self.fused is None) != (self.files.fused is None):
            raise ValueError(f"fused must be present if and only if files contains {FUSED_FILE}")
        if self.fused is not None:
            self._check_tasks(self.fused.golden, "fused.golden")
        return self

    def _check_pairs(self) -> None:
        if self.token_types > 1 and not self.pairs:
            raise ValueError(f"token_types must be 1 if pairs is false (got {self.token_types})")
        golden: list[GoldenPrompt | GoldenLabels] = [*self.golden.prompts, *self.golden.labels]
        seconds = [one.text_pair for one in golden if one.text_pair is not None]
        if seconds and not self.pairs:
            raise ValueError(
                f"golden must have no text_pair if pairs is false (got {quote(seconds[0])})"
            )

    def _check_tasks(self, golden: Golden, where: str) -> None:
        _check_distinct("tasks", self.tasks)
        for name, task in (
            ("classification", "text-classification"),
            ("token_classification", "token-classification"),
            ("sparse", "sparse"),
        ):
            if (task in self.tasks) != (getattr(self, name) is not None):
                raise ValueError(
                    f"{name} must be present if and only if tasks contains {task} "
                    f"(got the tasks {', '.join(self.tasks)})"
                )
        for name, given, task, tolerance in (
            ("prompts", golden.prompts, "fill-mask", "log_prob_tolerance"),
            ("labels", golden.labels, "text-classification", "logit_tolerance"),
            ("token_labels", golden.token_labels, "token-classification", "label_tolerance"),
            ("vectors", golden.vectors, "sparse", "weight_tolerance"),
        ):
            if bool(given) != (task in self.tasks):
                raise ValueError(
                    f"{where}.{name} must have entries if and only if tasks contains {task} "
                    f"(got {len(given)} with the tasks {', '.join(self.tasks)})"
                )
            if given and getattr(golden, tolerance) is None:
                raise ValueError(f"{where}.{tolerance} is missing; {EXPORT_AGAIN}")
        if self.sparse is not None and self.sparse.query_weights is not None:
            weights, size = len(self.sparse.query_weights), self.architecture.vocab_size
            if weights != size:
                raise ValueError(
                    f"sparse.query_weights must have one weight per token, {size} in total "
                    f"(got {weights})"
                )
        if self.token_classification is not None:
            _check_token_labels(self.token_classification.labels, golden, where)
        if self.classification is not None:
            _check_labels(self.classification.labels, golden, where)


def _check_labels(names: Sequence[str], golden: Golden, where: str) -> None:
    _check_distinct("classification.labels", names)
    if wrong := [len(one.logits) for one in golden.labels if len(one.logits) != len(names)]:
        raise ValueError(
            f"{where}.labels must have one logit per label, {len(names)} in total (got {wrong[0]})"
        )


def _check_token_labels(names: Sequence[str], golden: Golden, where: str) -> None:
    _check_distinct("token_classification.labels", names)
    for one in golden.token_labels:
        if len(one.log_probs) != len(one.labels) or max(one.labels) >= len(names):
            raise ValueError(
                f"{where}.token_labels must have one log-probability per label, and labels below "
                f"{len(names)}"
            )


def _check_distinct(name: str, entries: Sequence[str]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry in seen:
            raise ValueError(f"{name} must differ from each other (got {quote(entry)} twice)")
        seen.add(entry)
