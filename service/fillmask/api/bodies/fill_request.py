"""The request body of /fill-mask."""

from pydantic import ConfigDict, Field, JsonValue

from fillmask.api.bodies.hugging_face import HuggingFaceRequest
from fillmask.api.bodies.json_schema import Components
from fillmask.parameters.fill_mask import FillMaskParameters, FillOptions
from fillmask.parameters.texts import InputText
from fillmask.parameters.values import NOT_BLANK

_DEFAULTS = FillOptions()
_EXAMPLES: list[JsonValue] = [
    {"inputs": "Paris is the [MASK] of France.", "parameters": {"top_k": 5}},
    {"inputs": "She drank a cup of [MASK].", "parameters": {"targets": ["tea", "water"]}},
    {"inputs": {"text": "Where is she?", "text_pair": "She is at the [MASK]."}},
]


class FillMaskRequest(HuggingFaceRequest):
    """A request to fill the masks of one or more texts."""

    model_config = ConfigDict(json_schema_extra={"examples": _EXAMPLES})
    parameters_model = FillMaskParameters

    inputs: InputText | list[InputText] = Field(
        description="A text or a pair of texts with at least one mask, or a list of these."
    )
    parameters: FillMaskParameters | list[FillMaskParameters] | None = None

    @property
    def options(self) -> FillOptions | list[FillOptions]:
        """Options for all texts, or a list with the options of each text."""
        if isinstance(self.parameters, list):
            return [parameters.options for parameters in self.parameters]
        return self.parameters.options if self.parameters else _DEFAULTS

    @classmethod
    def components(cls, max_texts: int, max_top_k: int = 1) -> Components:
        """Return the JSON schemas of the request and its parts, with this server's limits."""
        components = super().components(max_texts)
        parameters = components[FillMaskParameters.__name__]["properties"]
        parameters["top_k"]["anyOf"][0]["maximum"] = max_top_k
        targets = parameters["targets"]["anyOf"][0]
        targets |= {"items": {"type": "string", "pattern": NOT_BLANK}, "uniqueItems": True}
        return components
