"""Request and response bodies of /classify."""

from collections.abc import Sequence
from typing import get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    RootModel,
    TypeAdapter,
    ValidationInfo,
    field_validator,
)

from service.api.bodies.hugging_face import HuggingFaceRequest
from service.api.bodies.request_body import (
    ErrorResponse,
    check_choice,
    check_whole_number,
)
from service.errors import InvalidRequestError
from service.tasks.classification import ClassificationOptions, FunctionToApply, LabelScore
from service.tasks.results import RejectedText
from service.tokenization.encoded_text import InputText

_FUNCTIONS: tuple[FunctionToApply, ...] = get_args(FunctionToApply)
_LABELS = TypeAdapter(list[LabelScore]).serializer
_REJECTED_TEXT = TypeAdapter(RejectedText).serializer
_EXAMPLES: list[JsonValue] = [
    {"inputs": "I loved this film.", "parameters": {"top_k": 1}},
    {"inputs": {"text": "Where is she?", "text_pair": "She is at home."}},
]


class ClassifyParameters(BaseModel):
    """Parameters of a classification request. A null has the same meaning as a missing field."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    top_k: int | None = Field(
        default=None,
        ge=1,
        description="Maximum number of labels per text. The default is all labels of the model.",
    )
    function_to_apply: FunctionToApply | None = Field(
        default=None,
        description="Function from logits to scores. The default is none for regression, sigmoid "
        "for several labels per text, and softmax for one label per text.",
    )

    @field_validator("top_k", mode="before")
    @classmethod
    def _check_top_k(cls, value: object, info: ValidationInfo) -> object:
        return check_whole_number(value, info)

    @field_validator("function_to_apply", mode="before")
    @classmethod
    def _check_function(cls, value: object, info: ValidationInfo) -> object:
        return check_choice(value, _FUNCTIONS, info)

    @property
    def options(self) -> ClassificationOptions:
        """Parameters in the form that the classification pipeline reads."""
        return ClassificationOptions(self.top_k, self.function_to_apply)


class ClassifyRequest(HuggingFaceRequest):
    """A request to classify one or more texts."""

    model_config = ConfigDict(json_schema_extra={"examples": _EXAMPLES})
    parameters_model = ClassifyParameters

    inputs: InputText | list[InputText] = Field(
        description="A text or a pair of texts, or a list of these."
    )
    parameters: ClassifyParameters | list[ClassifyParameters] | None = None

    @property
    def options(self) -> list[ClassificationOptions]:
        """Options of each text."""
        return [parameters.options for parameters in self.parameters_of_texts]


class LabelBody(BaseModel):
    """A label of a text, with its score."""

    label: str = Field(description="Name of the label.")
    score: float = Field(description="Probability of the label, or its logit for function none.")


class ClassifyResponse(RootModel[list[list[LabelBody] | ErrorResponse]]):
    """The labels of each text, best first. The body for a single text is a list with one list."""


def labels_to_json(labels: Sequence[list[LabelScore] | RejectedText], *, single: bool) -> bytes:
    """Return the response body.

    Args:
        single: true if the request has one text instead of a list.

    Raises:
        InvalidRequestError: the single text is invalid.
    """
    if single and isinstance(labels[0], RejectedText):
        raise InvalidRequestError(labels[0].error)
    # one text per call, because a single call for a large result blocks all other threads
    texts = [
        _REJECTED_TEXT.to_json(one) if isinstance(one, RejectedText) else _LABELS.to_json(one)
        for one in labels
    ]
    return b"[" + b",".join(texts) + b"]"
