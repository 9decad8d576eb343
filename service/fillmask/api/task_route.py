"""Routes of tasks, which find the model of a request and reject requests if it is overloaded."""

from typing import ClassVar

from fastapi.routing import APIRoute
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from fillmask.api.models import get_registry
from fillmask.bundles.description import Task
from fillmask.errors import OverloadedError
from fillmask.models.served_model import ServedModel
from fillmask.observability.request_context import MODEL


class TaskRoute(APIRoute):
    """Route of a task.

    Five times the load that the service can serve needs four rejections per response. Before
    FastAPI calls the endpoint, a rejection takes half the CPU time.

    Attributes:
        task: task that the model must have. None accepts any task.
        bulk: whether the work joins the bulk lane.
        body_names_model: whether the body may name another model than the path.
    """

    task: ClassVar[Task | None] = None
    bulk: ClassVar[bool] = False
    body_names_model: ClassVar[bool] = False

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "POST":
            name = scope["path_params"].get("name")
            served = self.find_model(scope["app"], name)
            scope[MODEL] = served.info.name
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


def route_of(of_bundle: Task, *, bulk: bool = False) -> type[TaskRoute]:
    """Return the class of routes of a task of bundles."""
    return type("TaskRoute", (TaskRoute,), {"task": of_bundle, "bulk": bulk})
