"""The endpoints of the tasks, which one function serves."""

from functools import partial

from fastapi import APIRouter, Response

from fillmask.api.models import route_of
from fillmask.api.operations import add_route, with_call
from fillmask.api.request_body import request_of
from fillmask.api.task_call import TaskCall, json_response
from fillmask.tasks.task import TASKS, Task


def add_task_routes(router: APIRouter) -> None:
    for task in TASKS.values():
        if (endpoint := task.endpoint) is not None:
            add_route(
                router,
                route_of(task.of_bundle, bulk=endpoint.bulk),
                endpoint.path,
                with_call(partial(serve, task)),
                name=task.name.replace("-", "_"),
                reads=[request_of(task)],
                responds=endpoint.response,
                with_model=True,
                summary=endpoint.summary,
                tags=[endpoint.tag],
            )


async def serve(task: Task, call: TaskCall) -> Response:
    """Serve a task in our own format."""
    body = await call.read(request_of(task).read)
    results, large = await call.run(task, body.asked())
    return await json_response(lambda: task.response(results, single=body.single), large=large)
