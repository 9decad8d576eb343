"""The endpoints of the tasks in our own format, all served by `task_call.serve`."""

from functools import partial

from fastapi import APIRouter

from fillmask.api.models import route_of
from fillmask.api.operations import add_route
from fillmask.api.request_body import request_of
from fillmask.api.task_call import serve
from fillmask.tasks.task import TASKS


def add_task_routes(router: APIRouter) -> None:
    for task in TASKS.values():
        if (endpoint := task.endpoint) is not None:
            add_route(
                router,
                route_of(task.of_bundle, bulk=endpoint.bulk),
                endpoint.path,
                partial(serve, task),
                name=task.name.replace("-", "_"),
                reads=[request_of(task)],
                responds=endpoint.response,
                with_model=True,
                summary=endpoint.summary,
                tags=[endpoint.tag],
            )
