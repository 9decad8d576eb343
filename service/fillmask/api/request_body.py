"""Request bodies, which check limits and create error messages."""

from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    Field,
    JsonValue,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from fillmask.errors import ContentTypeError, MalformedRequestError, quote
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import PAIR, InputText, Pair, read_inputs
from fillmask.parameters.types import Flag, OnErrorField
from fillmask.parameters.validation import (
    BODY,
    PARAMETERS,
    ClientObject,
    TaskParameters,
    ValidationContext,
    check_same_length,
    described,
    validation_context,
)
from fillmask.strict_json import check_value_count, parse_json
from fillmask.tasks.pipeline import Inputs
from fillmask.tasks.task import Task


def read_json(body: bytes, content_type: str | None) -> object:
    """Parse the JSON of a request body.

    Raises:
        ContentTypeError: the content type is not application/json.
        MalformedRequestError: the body is empty, or `parse_json` raises this error.
        InvalidRequestError: the body has more values than any valid request, a duplicate field or
            an unpaired surrogate. Such fields and surrogates are ambiguous.
    """
    if (content_type or "").partition(";")[0].strip().lower() != "application/json":
        raise ContentTypeError(
            f"The content type must be application/json (got {quote(content_type or '')})."
        )
    if not body or body.isspace():
        raise MalformedRequestError("The body is empty; it must be a JSON object.")
    check_value_count(body, "The body")
    return parse_json(body, "The body")


# the types of texts in JSON schemas
_Text = Annotated[str, Field(min_length=1)]
_Texts = Annotated[list[str | Pair], Field(min_length=1)]


class JsonRequest(ClientObject):
    """Base class of request bodies."""

    @classmethod
    def read(cls, body: bytes, content_type: str | None, limits: Limits) -> Self:
        """Parse and check a request, or raise the FillMaskError of its first error."""
        return cls.check(read_json(body, content_type), ValidationContext(limits, place=BODY))


def only(allowed: str, reason: str) -> Any:
    """Return the description of a field of another service that must not change the answer.

    The refusal of another value says the same.
    """
    return Field(description=f"Only {allowed}; {reason}.")


class InputsRequest(JsonRequest):
    """Base class of requests with one text or a list of texts."""

    inputs: InputText | list[InputText]

    @property
    def texts(self) -> list[InputText]:
        return self.inputs if isinstance(self.inputs, list) else [self.inputs]

    @property
    def single(self) -> bool:
        return not isinstance(self.inputs, list)


_FORM = f"a text, {PAIR} or a list of these"


class TextsRequest(InputsRequest):
    """Base class of requests with one or more texts."""

    task: ClassVar[Task]
    defaults: ClassVar[TaskParameters]
    missing_cure = f"; it must be {_FORM}"

    parameters: Any = None
    on_error: OnErrorField = None

    # after a plain validator, pydantic does not check each text again
    @field_validator("inputs", mode="plain", json_schema_input_type=_Text | Pair | _Texts)
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        limits, name, _ = validation_context(info)
        return read_inputs(value, name, limits.max_texts)

    @field_validator("parameters", mode="before")
    @classmethod
    def _check_parameters(cls, value: object, info: ValidationInfo) -> object:
        context = validation_context(info)._replace(place=PARAMETERS)
        return value if value is None else cls.task.parameters.read_each(value, context)

    @model_validator(mode="after")
    def _check_same_length(self, info: ValidationInfo) -> Self:
        check_same_length(self.parameters, self.inputs, validation_context(info))
        return self

    def asked(self, label: str = "inputs") -> Inputs[Any]:
        """Return the texts with their parameters, which are the default ones without any."""
        each = self.parameters
        if not isinstance(each, list):
            each = [each or self.defaults] * len(self.texts)
        return Inputs(self.texts, each, label, self.on_error == "report")


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
    """The field `options` of Hugging Face's Inference API, which older clients send, as a mixin."""

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


def body_of(
    task: Task,
    *bases: type[BaseModel],
    name: str,
    summary: str,
    examples: Iterable[JsonValue],
    **fields: Any,
) -> Any:
    """Return the type of requests for a task.

    Args:
        bases: base classes, the last of which is a TextsRequest.
        summary: what a request asks for.
        fields: further fields, as in `pydantic.create_model`.
    """
    own = task.parameters
    fields["parameters"] = own | list[own] | None, None  # type: ignore[valid-type]
    made: Any = create_model(
        f"{name}Request",
        __base__=bases,
        __doc__=f"A request to {summary[0].lower()}{summary[1:]}.",
        __cls_kwargs__={"json_schema_extra": described(*examples)},
        **fields,
    )
    made.task, made.defaults = task, own()
    return made


def title_of(task: Task) -> str:
    """Return the name of a task in names of types, such as FillMask."""
    return task.parameters.__name__.removesuffix("Parameters")


@cache
def request_of(task: Task) -> type[TextsRequest]:
    """Return the type of requests for a task in our own format."""
    endpoint = task.endpoint
    assert endpoint is not None  # noqa: S101 - of a task with an endpoint
    bases: list[type[BaseModel]] = [HuggingFaceRequest] if endpoint.hugging_face else []
    made: type[TextsRequest] = body_of(
        task,
        *bases,
        TextsRequest,
        name=title_of(task),
        summary=endpoint.summary,
        examples=endpoint.examples,
        inputs=(InputText | list[InputText], Field(description=endpoint.inputs)),
    )
    return made
