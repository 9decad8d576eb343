"""The request body of /fill-mask."""

from pydantic import ConfigDict, Field, JsonValue

from fillmask.api.request_body import TextsRequest
from fillmask.api.wire.hugging_face import HuggingFaceRequest
from fillmask.parameters.texts import InputText
from fillmask.parameters.validation import described
from fillmask.tasks.fill_mask.parameters import FillMaskParameters, FillOptions

_DEFAULTS = FillOptions()
_EXAMPLES: list[JsonValue] = [
    {"inputs": "Paris is the [MASK] of France.", "parameters": {"top_k": 5}},
    {"inputs": "She drank a cup of [MASK].", "parameters": {"targets": ["tea", "water"]}},
    {"inputs": {"text": "Where is she?", "text_pair": "She is at the [MASK]."}},
]


class TextsToFill(TextsRequest):
    """One or more texts to fill, in any protocol."""

    parameters_model = FillMaskParameters

    parameters: FillMaskParameters | list[FillMaskParameters] | None = None

    @property
    def options(self) -> FillOptions | list[FillOptions]:
        if isinstance(self.parameters, list):
            return [parameters.options for parameters in self.parameters]
        return self.parameters.options if self.parameters else _DEFAULTS


class FillMaskRequest(HuggingFaceRequest, TextsToFill):
    """A request to fill the masks of one or more texts."""

    model_config = ConfigDict(json_schema_extra=described(*_EXAMPLES))

    inputs: InputText | list[InputText] = Field(
        description="A text or a pair of texts with at least one mask, or a list of these."
    )
