"""Request bodies in the OpenAPI document that depend on the tasks of the loaded models."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from service.api.bodies.classify import ClassifyRequest
from service.api.bodies.fill_request import FillMaskRequest
from service.api.protocols.infer_schema import infer_schema, with_model_names
from service.api.protocols.predict_v1 import request_schema
from service.api.protocols.routes import INFER_PATHS, PREDICT_PATH
from service.api.routes import MODEL_PATH, ROOT_PATH
from service.bundles.description import Task
from service.registry.registry import ModelRegistry

_BEFORE_LOADING: tuple[Task, ...] = ("fill-mask",)
_Schemas = Mapping[Task, dict[str, Any]]
_RESPONSES: Mapping[Task, str] = {
    "fill-mask": "#/components/schemas/FillMaskResponse",
    "text-classification": "#/components/schemas/ClassifyResponse",
}


@dataclass(frozen=True, slots=True)
class ServedTasks:
    """Tasks of the loaded models.

    Attributes:
        default: first task of the default model.
        first: first task of each model.
        every: all tasks of all models.
        several: true if at least one model has more than one task.
    """

    default: Task = "fill-mask"
    first: Collection[Task] = _BEFORE_LOADING
    every: Collection[Task] = _BEFORE_LOADING
    several: bool = False

    @classmethod
    def of(cls, models: ModelRegistry | None) -> Self:
        """Return the tasks of the models. Before models are loaded, the only task is fill-mask."""
        if models is None:
            return cls()
        tasks = [model.info.tasks for model in models.by_name.values()]
        return cls(
            default=models.default.info.tasks[0],
            first={own[0] for own in tasks},
            every={task for own in tasks for task in own},
            several=any(len(own) > 1 for own in tasks),
        )


class TaskSchemas:
    """Schemas of request bodies that depend on the tasks of the loaded models.

    Args:
        max_texts: maximum number of texts of one request.
        max_top_k: maximum number of fills per mask.
    """

    def __init__(self, max_texts: int, max_top_k: int) -> None:
        self._texts: _Schemas = {
            "fill-mask": FillMaskRequest.schema_with_limits(max_texts, max_top_k),
            "text-classification": ClassifyRequest.schema_with_limits(max_texts),
        }
        self._instances = {task: request_schema(body) for task, body in self._texts.items()}
        self._tensors = {task: infer_schema(task, body) for task, body in self._texts.items()}
        labels = self._tensors["text-classification"]
        parameters = labels["properties"]["parameters"] | {"required": ["task"]}
        # a model with both tasks fills masks unless the request names the other task
        self._tensors_by_name = self._tensors | {
            "text-classification": labels
            | {
                "required": [*labels["required"], "parameters"],
                "properties": labels["properties"] | {"parameters": parameters},
            }
        }

    def apply(
        self, document: dict[str, Any], tasks: ServedTasks, model_names: Sequence[str]
    ) -> None:
        """Replace the schemas that depend on tasks or model names in an OpenAPI document."""
        paths = document["paths"]
        for path, chosen in ((ROOT_PATH, {tasks.default}), (MODEL_PATH, set(tasks.first))):
            _set_body(paths[path], self._texts, chosen)
            response = paths[path]["post"]["responses"]["200"]["content"]["application/json"]
            response["schema"] = _any_of([{"$ref": _RESPONSES[task]} for task in sorted(chosen)])
        _set_body(paths[PREDICT_PATH], self._instances, set(tasks.first))
        tensors = self._tensors_by_name if tasks.several else self._tensors
        named = {task: with_model_names(schema, model_names) for task, schema in tensors.items()}
        for path in INFER_PATHS:
            _set_body(paths[path], named, set(tasks.every))


def _set_body(path: dict[str, Any], schemas: _Schemas, tasks: Collection[Task]) -> None:
    content = path["post"]["requestBody"]["content"]["application/json"]
    content["schema"] = _any_of([schemas[task] for task in sorted(tasks)])


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
