"""The paths to which Hugging Face's clients send the bodies of a model's first task."""

from functools import reduce
from operator import or_
from typing import Any

from fastapi import APIRouter, Response

from fillmask.api.models import TaskRoute, endpoints_of
from fillmask.api.operations import add_route
from fillmask.api.request_body import request_of
from fillmask.api.task_call import TaskCall, serve
from fillmask.errors import InvalidRequestError, quote
from fillmask.tasks.task import CLASSIFY, TASKS

_TASKS = [task for task in TASKS.values() if task.endpoint and task.endpoint.hugging_face]


def add_hugging_face_routes(router: APIRouter) -> None:
    """Add the paths.

    The routes of all tasks come before /models/{name}, because /models/a/score is also the path of
    a model with the name a/score.
    """
    responses: list[Any] = [task.endpoint.response for task in _TASKS if task.endpoint is not None]
    for path, name in (("/", "run_default_model"), ("/models/{name:path}", "run_model")):
        add_route(
            router,
            TaskRoute,
            path,
            _run_first_task,
            name=name,
            reads=[request_of(task) for task in _TASKS],
            responds=reduce(or_, responses),
            summary="Fill the masks of texts, or classify texts or tokens",
            description="A model with the task fill-mask fills masks. Any other model classifies "
            "texts or tokens.",
            tags=["Hugging Face"],
        )


async def _run_first_task(call: TaskCall) -> Response:
    """Respond with the fills, the labels or the entities of the texts of a request.

    Hugging Face's clients send the bodies of all tasks to the same path, without the name of the
    task. An error for a body without a mask therefore names the tasks of the model.
    """
    info = call.served.info
    task = next((task for task in _TASKS if task.of_bundle == info.tasks[0]), CLASSIFY)
    try:
        return await serve(task, call)
    except InvalidRequestError as error:
        if info.mask_token.encode() in call.body:
            raise
        app = call.request.app
        paths = {one: ", ".join(endpoints_of(app, call.served, one)) for one in info.tasks}
        tasks = " and ".join(f"{one} ({endpoints})" for one, endpoints in paths.items())
        raise InvalidRequestError(
            f"{error.text.removesuffix('.')}; model {quote(info.name)} has the task {tasks}."
        ) from error
