"""The field `options` of Hugging Face's Inference API, which older clients send."""

from pydantic import BaseModel, ConfigDict, Field, field_validator

from fillmask.errors import quote
from fillmask.parameters.validation import described
from fillmask.parameters.values import client_error, describe


class HuggingFaceOptions(BaseModel):
    """Options of Hugging Face's Inference API, which have no effect on this service."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=described())

    use_cache: bool | None = Field(
        default=None, description="No effect, because the service computes every response."
    )
    wait_for_model: bool | None = Field(
        default=None, description="No effect, because the service loads its models at the start."
    )
    use_gpu: bool | None = Field(
        default=None, description="No effect, because the models run on CPUs."
    )


class HuggingFaceRequest(BaseModel):
    """The field of requests in the format of Hugging Face's Inference API, as a mixin."""

    # the property `options` contains the options of the task
    hugging_face_options: HuggingFaceOptions | None = Field(
        default=None,
        alias="options",
        description="Options of Hugging Face's Inference API, which have no effect.",
    )

    @field_validator("hugging_face_options", mode="before")
    @classmethod
    def _check_options(cls, value: object) -> object:
        if value is None:
            return value
        if not isinstance(value, dict):
            raise client_error(f"options must be a JSON object (got {describe(value)}).")
        names = HuggingFaceOptions.model_fields
        for name, flag in value.items():
            if name not in names:
                raise client_error(
                    f"Unknown field {quote(name)} in options; allowed: {', '.join(names)}."
                )
            if not (flag is None or isinstance(flag, bool)):
                raise client_error(f"options.{name} must be true or false (got {describe(flag)}).")
        return value
