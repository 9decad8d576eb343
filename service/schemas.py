"""Bodies of requests for fills, and of what the service says of itself."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from service.body import TextsBody
from service.fill_parameters import Parameters
from service.tasks.options import FillOptions

NOT_BLANK = r"\S"  # at least one character that is no white space
_DEFAULTS = FillOptions()
_EXAMPLE: dict[str, JsonValue] = {
    "inputs": "Paris is the [MASK] of France.",
    "parameters": {"top_k": 5},
}


class FillMaskBody(TextsBody):
    """What to fill."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})
    parameters_model = Parameters

    inputs: str | list[str] = Field(
        description="A text with at least one mask, or a list of such texts."
    )
    parameters: Parameters | list[Parameters] | None = None

    @property
    def options(self) -> FillOptions | list[FillOptions]:
        """How to fill all the texts, or each."""
        if isinstance(self.parameters, list):
            return [one.options for one in self.parameters]
        return self.parameters.options if self.parameters else _DEFAULTS

    @classmethod
    def schema_with_limits(cls, max_texts: int, max_top_k: int = 1) -> dict[str, Any]:
        """The JSON schema, in one piece and with this server's limits."""
        schema = super().schema_with_limits(max_texts)
        # a list of parameters has the same object
        parameters = schema["properties"]["parameters"]["anyOf"][0]
        parameters["properties"]["top_k"]["anyOf"][0]["maximum"] = max_top_k
        targets = parameters["properties"]["targets"]["anyOf"][0]
        targets |= {"items": {"type": "string", "pattern": NOT_BLANK}, "uniqueItems": True}
        return schema


class StatusBody(BaseModel):
    """What the service says of its health."""

    status: str
