"""The models of requests: their registry, and the routes of tasks, which refuse an overload."""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from fillmask.bundles.description import Task
from fillmask.errors import NotReadyError, OverloadedError
from fillmask.models.registry import ModelRegistry
from fillmask.models.served_model import ServedModel
from fillmask.observability.request_context import MODEL

SERVED = "fillmask.served"  # key of the scope, for the model that a request uses to its end


def get_registry(app: Starlette) -> ModelRegistry:
    """Return the model registry, or raise NotReadyError while no model is loaded."""
    models: ModelRegistry | None = getattr(app.state, "models", None)
    if models is None:
        raise NotReadyError(
            app.state.health.not_ready_reason or "The service is starting; wait until it is ready."
        )
    return models


async def get_ready_model(app: Starlette, name: str | None = None) -> ServedModel:
    """Return the named or default model if this model is ready.

    Raises:
        NotReadyError: the service is not ready, or the model fails its readiness probe.
        NotFoundError: no loaded model has the requested name.
    """
    served = get_registry(app).get(name)
    if (
        reason := app.state.health.not_ready_reason or await served.probe.failure_reason()
    ) is not None:
        raise NotReadyError(reason)
    return served


class TaskRoute(APIRoute):
    """Route of a task.

    Five times the load that the service can serve needs four rejections per response. Before
    FastAPI calls the endpoint, a rejection takes half the CPU time.

    Attributes:
        task: task that the model must have. None accepts any task.
        bulk: whether the work joins the bulk lane.
        is_main: whether messages name the path as an endpoint of the task.
        body_names_model: whether the body may name another model than the path.
    """

    task: ClassVar[Task | None] = None
    bulk: ClassVar[bool] = False
    is_main: ClassVar[bool] = False
    body_names_model: ClassVar[bool] = False

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the endpoint, which has no dependencies for FastAPI's handler to solve."""
        return self.endpoint

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await super().handle(scope, receive, send)
            return
        name = scope["path_params"].get("name")
        scope[SERVED] = served = self.find_model(scope["app"], name)
        scope[MODEL] = served.info.name
        with served.in_use:
            is_known = name is not None or not self.body_names_model
            try:
                if is_known or len(get_registry(scope["app"]).by_name) == 1:
                    served.batcher.raise_if_overloaded(bulk=self.bulk)
            except OverloadedError:
                await receive()  # an unread body would close the connection
                raise
            await super().handle(scope, receive, send)

    def find_model(self, app: Starlette, name: str | None) -> ServedModel:
        """Return the named model, or the default model of the task.

        Raises:
            FillMaskError: no model is loaded, has this name or has the task.
        """
        return get_registry(app).get(name, self.task)

    def serves(self, served: ServedModel) -> bool:  # noqa: ARG002 - of all routes
        """Return whether a model with the task can answer."""
        return True


class RerankRoute(TaskRoute):
    """Route of reranking, whose body may name the model.

    The default model is the first model that can rerank.
    """

    task = "text-classification"
    body_names_model = True

    def find_model(self, app: Starlette, name: str | None) -> ServedModel:
        models = get_registry(app)
        served = models.get(name, self.task)
        if name is None and not served.reranks:
            return next((one for one in models.by_name.values() if one.reranks), served)
        return served

    def serves(self, served: ServedModel) -> bool:
        return served.reranks


class MainRerankRoute(RerankRoute):
    """The route of reranking that messages name."""

    is_main = True


def route_of(of_bundle: Task, *, bulk: bool = False, is_main: bool = True) -> type[TaskRoute]:
    """Return the class of routes of a task of bundles."""
    fields = {"task": of_bundle, "bulk": bulk, "is_main": is_main}
    return type("TaskRoute", (TaskRoute,), fields)


def endpoints_of(app: Starlette, served: ServedModel, task: Task) -> list[str]:
    """Return the main endpoints of one of the model's tasks, such as POST /fill-mask."""
    main = [one for one in app.routes if isinstance(one, TaskRoute) and one.is_main]
    found = [one.path for one in main if one.task == task and one.serves(served)]
    return [f"POST {path}" for path in found if "{" not in path]
