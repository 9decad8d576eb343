"""The V1 protocol of TensorFlow Serving and KServe."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, ValidationInfo, field_validator

from fillmask.api.models import TaskRoute, get_ready_model, get_registry
from fillmask.api.operations import add_route
from fillmask.api.request_body import TextsRequest, body_of, read_json, title_of
from fillmask.api.task_call import TaskCall, json_response
from fillmask.bundles.description import Task as BundleTask
from fillmask.errors import InvalidRequestError
from fillmask.parameters.limits import Limits
from fillmask.parameters.texts import InputText, Pair, read_inputs
from fillmask.parameters.validation import BODY, ValidationContext, validation_context
from fillmask.parameters.values import describe
from fillmask.tasks.classify.results import ClassifyResponse
from fillmask.tasks.classify_tokens.results import EntityBody
from fillmask.tasks.fill_mask.results import MaskFills
from fillmask.tasks.result import ErrorResponse, response_parts
from fillmask.tasks.task import CLASSIFY, CLASSIFY_TOKENS, FILL_MASK, Task

_INSTANCES = "instances"

_FORM = "a list of texts or pairs"


class _Instances(TextsRequest):
    missing_cure = f"; it must be {_FORM}"

    inputs: list[InputText] = Field(alias="instances")

    @field_validator(
        "inputs",
        mode="plain",
        json_schema_input_type=Annotated[list[str | Pair], Field(min_length=1)],
    )
    @classmethod
    def _check_inputs(cls, value: object, info: ValidationInfo) -> object:
        if not isinstance(value, list):
            raise InvalidRequestError(f"{_INSTANCES} must be {_FORM} (got {describe(value)}).")
        return read_inputs(value, _INSTANCES, validation_context(info).limits.max_texts)


def _request_of(task: Task, text: str) -> type[TextsRequest]:
    made: type[TextsRequest] = body_of(
        task,
        _Instances,
        name=f"Predict{title_of(task)}",
        summary=f"{task.name.partition('-')[0]} instances",
        examples=[{_INSTANCES: [text]}],
    )
    return made


_REQUESTS = {
    task.of_bundle: _request_of(task, text)
    for task, text in (
        (FILL_MASK, "Paris is the [MASK] of France."),
        (CLASSIFY, "I loved this film."),
        (CLASSIFY_TOKENS, "Ada Lovelace was born in London."),
    )
}


class PredictFillMaskResponse(BaseModel):
    """The fills of each instance, as in a response of /fill-mask."""

    predictions: list[MaskFills | list[MaskFills] | ErrorResponse]


class PredictClassifyResponse(BaseModel):
    """The labels of each instance, as in a response of /classify."""

    predictions: ClassifyResponse


class PredictClassifyTokensResponse(BaseModel):
    """The entities of each instance, as in a response of /classify-tokens."""

    predictions: list[list[EntityBody] | ErrorResponse]


def add_predict_routes(router: APIRouter) -> None:
    tags: list[Any] = ["V1 protocol"]

    add_route(
        router,
        TaskRoute,
        "/v1/models/{name}:predict",
        _predict,
        name="predict",
        reads=[*_REQUESTS.values()],
        responds=PredictFillMaskResponse | PredictClassifyResponse | PredictClassifyTokensResponse,
        summary="Fill masks, or classify texts or tokens",
        tags=tags,
    )

    @router.get("/v1/models", summary="List the names of the served models", tags=tags)
    async def v1_models(request: Request) -> dict[str, list[str]]:
        return {"models": list(get_registry(request.app).by_served_name)}

    @router.get("/v1/models/{name}", summary="Check that the model is ready", tags=tags)
    async def v1_model(request: Request, name: str) -> dict[str, Any]:
        await get_ready_model(request.app, name)
        return {"name": name, "ready": True}


def read_instances(
    body: bytes, content_type: str | None, limits: Limits, task: BundleTask
) -> TextsRequest:
    form = _REQUESTS.get(task, _REQUESTS["text-classification"])
    context = ValidationContext(limits, _INSTANCES, BODY)
    return form.check(read_json(body, content_type), context)


async def _predict(call: TaskCall) -> Response:
    """Respond to a request such as `{"instances": ["a [MASK]"], "parameters": {"top_k": 3}}`.

    The model's task determines the allowed parameters.
    """
    body = await call.read(partial(read_instances, task=call.served.info.tasks[0]))
    results, large = await call.run(body.task, body.asked(_INSTANCES))

    def write() -> bytes:
        parts = response_parts(results, body.task.to_json, single=False)
        return b"".join([b'{"predictions":', *parts, b"}"])

    return await json_response(write, large=large)
