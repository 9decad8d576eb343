"""The model that a request asks for."""

from starlette.applications import Starlette
from starlette.requests import Request

from service.errors import NotReadyError
from service.observability.request_context import MODEL
from service.registry.registry import ModelRegistry
from service.registry.served_model import ServedModel


def get_registry(app: Starlette) -> ModelRegistry:
    """The models of an application, which has its `Health` at `state.health`.

    Raises:
        NotReadyError: nothing is served yet.
    """
    models: ModelRegistry | None = getattr(app.state, "models", None)
    if models is None:
        raise NotReadyError(app.state.health.not_ready_reason or "The service is starting.")
    return models


def get_model(request: Request, name: str | None = None) -> ServedModel:
    """The model that a request asks for: that of the name, or else the default.

    Raises:
        NotReadyError: nothing is served yet.
        NotFoundError: there is none of that name.
    """
    served = get_registry(request.app).get(name)
    request.scope[MODEL] = served.info.name
    return served


async def get_ready_model(app: Starlette, name: str | None = None) -> ServedModel:
    """A model that can answer: that of the name, or else the default.

    Raises:
        NotReadyError: it cannot.
        NotFoundError: there is none of that name.
    """
    served = get_registry(app).get(name)
    if (
        reason := app.state.health.not_ready_reason or await served.probe.failure_reason()
    ) is not None:
        raise NotReadyError(reason)
    return served
