"""The field `options` of Hugging Face's Inference API, which older clients send."""

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from fillmask.parameters.types import Flag
from fillmask.parameters.validation import ClientObject, validation_context


class HuggingFaceOptions(ClientObject):
    """Options of Hugging Face's Inference API, which have no effect on this service."""

    use_cache: Flag | None = Field(
        default=None, description="No effect, because the service computes every response."
    )
    wait_for_model: Flag | None = Field(
        default=None, description="No effect, because the service loads its models at the start."
    )
    use_gpu: Flag | None = Field(
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
    def _check_options(cls, value: object, info: ValidationInfo) -> object:
        context = validation_context(info)._replace(place="options")
        return value if value is None else HuggingFaceOptions.check(value, context)
