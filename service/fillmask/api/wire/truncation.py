"""Fields of text-embeddings-inference about texts that exceed the model's input."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from fillmask.api.request_body import only
from fillmask.parameters.types import Flag


class TruncationFields(BaseModel):
    """Fields of requests with texts that may be cut, as a mixin."""

    truncate: Flag | None = Field(
        default=None,
        description="Whether a text that exceeds the model's input loses tokens, and a pair those "
        "of its longer text. Otherwise it is invalid. The default is false, unless the service has "
        "auto_truncate or the model was published with a maximum length to which it truncates.",
    )
    truncation_direction: Annotated[
        Literal["Left", "Right"] | None,
        BeforeValidator(lambda value: value.title() if value in ("left", "right") else value),
        only("Left or Right", "by default, texts are cut as the model cuts them"),
    ] = None

    @property
    def truncation(self) -> dict[str, Any]:
        side = self.truncation_direction and self.truncation_direction.lower()
        return {"truncate": self.truncate, "side": side, "cure": "truncate to true"}
