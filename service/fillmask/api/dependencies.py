"""Lookup of the model registry and of the model that a request names."""

from starlette.applications import Starlette
from starlette.requests import Request

from fillmask.bundles.description import Task
from fillmask.errors import NotReadyError
from fillmask.observability.request_context import MODEL
from fillmask.registry.registry import ModelRegistry
from fillmask.registry.served_model import ServedModel


def get_registry(app: Starlette) -> ModelRegistry:
    """Return the model registry of an application.

    Raises:
        NotReadyError: no model is loaded yet.
    """
    models: ModelRegistry | None = getattr(app.state, "models", None)
    if models is None:
        raise NotReadyError(
            app.state.health.not_ready_reason or "The service is starting; wait until it is ready."
        )
    return models


def get_model(request: Request, name: str | None, task: Task | None) -> ServedModel:
    """Return the named model. Without a name, return the default model for the task.

    The function also stores the model's name in the request scope for the statistics.

    Raises:
        NotReadyError: no model is loaded yet.
        NotFoundError: no loaded model has the requested name.
        InvalidRequestError: the model does not have the task.
    """
    served = get_registry(request.app).get(name, task)
    request.scope[MODEL] = served.info.name
    return served


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
