"""Request and response bodies of /classify."""

from pydantic import BaseModel, ConfigDict, Field, JsonValue, RootModel

from fillmask.api.request_body import ErrorResponse, TextsRequest
from fillmask.api.schema import fields_of
from fillmask.api.wire.hugging_face import HuggingFaceRequest
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import described
from fillmask.tasks.classify.parameters import ClassifyParameters
from fillmask.tasks.classify.results import LabelScore

_EXAMPLES: list[JsonValue] = [
    {"inputs": "I loved this film.", "parameters": {"top_k": 1}},
    {"inputs": {"text": "Where is she?", "text_pair": "She is at home."}},
]


class TextsToClassify(TextsRequest):
    """One or more texts to classify, in any protocol."""

    parameters_model = ClassifyParameters

    parameters: ClassifyParameters | list[ClassifyParameters] | None = None


class ClassifyRequest(HuggingFaceRequest, TextsToClassify):
    """A request to classify one or more texts."""

    model_config = ConfigDict(json_schema_extra=described(*_EXAMPLES))

    inputs: InputText | list[InputText] = Field(
        description="A text or a pair of texts, or a list of these."
    )


@fields_of(LabelScore)
class LabelBody(BaseModel):
    """A label of a text, with its score."""


class ClassifyResponse(RootModel[list[list[LabelBody] | ErrorResponse]]):
    """The labels of each text, best first. The body for a single text is a list with one list."""
