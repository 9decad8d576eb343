"""Strict pydantic models of bundle.json.

Strict models do not convert values, for example the text "1" to a number. Unknown fields are
errors, except in the figures of the verification.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from fillmask.bundles.validation import EXPORT_AGAIN, check_name, unknown_field
from fillmask.errors import quote

SCHEMA_VERSION = 3
READABLE_VERSIONS = (2, 3)  # version 2 has only the task fill-mask and no pairs
MODEL_FILE: Final = "model.onnx"
WEIGHTS_FILE: Final = "weights.bin"  # a separate file, which may have more than 2 GB
TOKENIZER_FILE: Final = "tokenizer.json"
DESCRIPTION_FILE = "bundle.json"
FILES = (MODEL_FILE, WEIGHTS_FILE, TOKENIZER_FILE)

Task = Literal["fill-mask", "text-classification"]
ProblemType = Literal["single_label_classification", "multi_label_classification", "regression"]
Pooling = Literal["first", "mean"]

_Entry = TypeVar("_Entry")
Size = Annotated[int, Field(ge=1)]
TokenId = Annotated[int, Field(ge=0)]
# JSON has no tuples. fail_fast stops at the first invalid entry, because millions of errors take
# gigabytes of memory.
List = Annotated[tuple[_Entry, ...], Field(strict=False, fail_fast=True)]
FilledList = Annotated[tuple[_Entry, ...], Field(strict=False, fail_fast=True, min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: object) -> object:
        """Reject an object with too many fields, because pydantic creates one error per field."""
        allowed = {field.alias or name for name, field in cls.model_fields.items()}
        if (
            cls.model_config["extra"] == "forbid"
            and isinstance(value, dict)
            and len(value) > len(allowed)
        ):
            raise unknown_field(next(name for name in value if name not in allowed))
        return value


def _remove_constraints(schema: dict[str, Any]) -> None:
    """Remove minimum values and the ban on unknown fields from a schema."""
    schema.pop("additionalProperties", None)
    for field in schema["properties"].values():
        field.pop("minimum", None)


class Architecture(_Strict):
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


class FileRecord(_Strict):
    """Expected size in bytes and expected SHA-256 of a file."""

    sha256: str
    bytes: Annotated[int, Field(ge=0)]


class FileRecords(_Strict):
    """Size and SHA-256 of each file of a bundle.

    Other file names are invalid, so that no path points outside the directory of the bundle.
    """

    model: FileRecord = Field(alias=MODEL_FILE)
    weights: FileRecord = Field(alias=WEIGHTS_FILE)
    tokenizer: FileRecord = Field(alias=TOKENIZER_FILE)


class GoldenFill(_Strict):
    """A token and its natural log-probability over the entire vocabulary."""

    token: TokenId
    log_prob: float


class GoldenPrompt(_Strict):
    """A text or a pair with the expected fills of each of its masks, best first."""

    text: str
    text_pair: str | None = None
    fills: List[FilledList[GoldenFill]]


class GoldenLabels(_Strict):
    """A text or a pair with the expected logit of each label."""

    text: str
    text_pair: str | None = None
    logits: FilledList[float]


class Golden(_Strict):
    """Golden prompts and golden texts, whose results must match within tolerances.

    The task fill-mask needs `prompts` and `log_prob_tolerance`. The task text-classification needs
    `labels` and `logit_tolerance`.
    """

    log_prob_tolerance: Annotated[float, Field(gt=0)] | None = None
    prompts: List[GoldenPrompt]
    logit_tolerance: Annotated[float, Field(gt=0)] | None = None
    labels: List[GoldenLabels] = ()


class Classification(_Strict):
    """The classification head of a model, with the labels in the order of the logits."""

    labels: FilledList[str]
    problem_type: ProblemType
    pooling: Pooling


class Int8Figures(_Strict):
    """Differences of log-probabilities between int8 and fp32, in nats."""

    model_config = ConfigDict(extra="ignore")

    mean_log_prob_difference: float
    p99_log_prob_difference: float


class LabelInt8Figures(_Strict):
    """Differences of the labels' logits between int8 and fp32."""

    model_config = ConfigDict(extra="ignore")

    mean_logit_difference: float
    p99_logit_difference: float


class Description(_Strict):
    """Content of bundle.json.

    `max_tokens` includes special tokens. With `pairs`, the model also reads pairs of texts. If
    `token_types` is above 1, the graph has an input for token types.
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
    files: FileRecords
    verification: dict[str, Any]
    golden: Golden

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
        self._check_tasks()
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

    def _check_tasks(self) -> None:
        _check_distinct("tasks", self.tasks)
        classifies = "text-classification" in self.tasks
        if classifies != (self.classification is not None):
            raise ValueError(
                "classification must be present if and only if tasks contains text-classification "
                f"(got the tasks {', '.join(self.tasks)})"
            )
        golden = self.golden
        for name, given, task, tolerance in (
            ("prompts", golden.prompts, "fill-mask", "log_prob_tolerance"),
            ("labels", golden.labels, "text-classification", "logit_tolerance"),
        ):
            if bool(given) != (task in self.tasks):
                raise ValueError(
                    f"golden.{name} must have entries if and only if tasks contains {task} "
                    f"(got {len(given)} with the tasks {', '.join(self.tasks)})"
                )
            if given and getattr(golden, tolerance) is None:
                raise ValueError(f"golden.{tolerance} is missing; {EXPORT_AGAIN}")
        if self.classification is None:
            return
        _check_distinct("classification.labels", self.classification.labels)
        labels = len(self.classification.labels)
        if wrong := [len(one.logits) for one in self.golden.labels if len(one.logits) != labels]:
            raise ValueError(
                f"golden.labels must have one logit per label, {labels} in total (got {wrong[0]})"
            )


def _check_distinct(name: str, entries: Sequence[str]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry in seen:
            raise ValueError(f"{name} must differ from each other (got {quote(entry)} twice)")
        seen.add(entry)
