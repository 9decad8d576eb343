"""Lookup of the model registry, of the model that a request names, and of a model's endpoints."""

from starlette.applications import Starlette

from fillmask.bundles.description import Task
from fillmask.errors import NotReadyError
from fillmask.models.registry import ModelRegistry
from fillmask.models.served_model import ServedModel
from fillmask.tasks.task import tasks_of


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


def endpoints_of(served: ServedModel, task: Task) -> list[str]:
    """Return the endpoints of one of the model's tasks, such as POST /fill-mask."""
    paths = [one.endpoint.path for one in tasks_of([task]) if one.endpoint is not None]
    paths += ["/embed_sparse"] * (task == "sparse")
    paths += ["/rerank"] * (task == "text-classification" and served.reranks)
    return [f"POST {path}" for path in paths]
