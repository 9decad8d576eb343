"""Request bodies in the OpenAPI document, which depend on the loaded models."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from fillmask.api.bodies.classify import ClassifyRequest
from fillmask.api.bodies.fill_request import FillMaskRequest
from fillmask.api.bodies.json_schema import Components, reference
from fillmask.api.bodies.score import ScoreRequest
from fillmask.api.protocols.infer_schema import infer_components
from fillmask.api.protocols.predict_v1 import predict_components
from fillmask.api.protocols.routes import INFER_PATHS, PREDICT_PATH
from fillmask.api.routes import (
    CLASSIFY_PATH,
    FILL_MASK_PATH,
    MODEL_CLASSIFY_PATH,
    MODEL_PATH,
    MODEL_SCORE_PATH,
    ROOT_PATH,
    SCORE_PATH,
)
from fillmask.bundles.description import Task
from fillmask.registry.registry import ModelRegistry

_BEFORE_LOADING: tuple[Task, ...] = ("fill-mask",)
_MASK = "[MASK]"  # of the examples in the modules of the bodies
# names of the tasks in the names of schemas, in the order of unions
_NAMES: Mapping[Task, str] = {"fill-mask": "FillMask", "text-classification": "Classify"}


@dataclass(frozen=True, slots=True)
class ServedTasks:
    """Tasks of the loaded models.

    Attributes:
        default: first task of the default model.
        first: first task of each model.
        every: all tasks of all models.
        several: true if at least one model has more than one task.
        mask_token: mask token of the default model for fills.
        pairs: true if all models read pairs.
    """

    default: Task = "fill-mask"
    first: Collection[Task] = _BEFORE_LOADING
    every: Collection[Task] = _BEFORE_LOADING
    several: bool = False
    mask_token: str = _MASK
    pairs: bool = True

    @classmethod
    def of(cls, models: ModelRegistry | None) -> Self:
        """Return the tasks of the models. Before models are loaded, the only task is fill-mask."""
        if models is None:
            return cls()
        infos = [model.info for model in (models.default, *models.by_name.values())]
        tasks = [info.tasks for info in infos]
        masks = (info.mask_token for info in infos if "fill-mask" in info.tasks)
        return cls(
            default=tasks[0][0],
            first={own[0] for own in tasks},
            every={task for own in tasks for task in own},
            several=any(len(own) > 1 for own in tasks),
            mask_token=next(masks, _MASK),
            pairs=all(info.pairs for info in infos),
        )


class RequestSchemas:
    """Schemas of the request bodies.

    Args:
        max_texts: maximum number of texts of one request.
        max_top_k: maximum number of fills per mask.
    """

    def __init__(self, max_texts: int, max_top_k: int) -> None:
        self._components: Components = {
            **FillMaskRequest.components(max_texts, max_top_k),
            **ScoreRequest.components(max_texts),
            **ClassifyRequest.components(max_texts),
        }
        for name in _NAMES.values():
            self._components |= predict_components(name, self._components[f"{name}Request"])

    def apply(
        self, document: dict[str, Any], tasks: ServedTasks, model_names: Collection[str]
    ) -> None:
        """Add the request bodies and the responses that depend on tasks to an OpenAPI document."""
        components = dict(self._components)
        for task, name in _NAMES.items():
            components |= infer_components(
                task,
                name,
                components[f"{name}Parameters"],
                # a model with both tasks fills masks unless the request names the other task
                required=tasks.several and task == "text-classification",
                named=bool(model_names),
            )
        document["components"]["schemas"] |= {
            name: _with_examples(schema, tasks) for name, schema in components.items()
        }
        default, first, every = (
            [name for task, name in _NAMES.items() if task in chosen]
            for chosen in ({tasks.default}, tasks.first, tasks.every)
        )
        requests = {
            FILL_MASK_PATH: ["FillMaskRequest"],
            SCORE_PATH: ["ScoreRequest"],
            MODEL_SCORE_PATH: ["ScoreRequest"],
            CLASSIFY_PATH: ["ClassifyRequest"],
            MODEL_CLASSIFY_PATH: ["ClassifyRequest"],
            ROOT_PATH: [f"{name}Request" for name in default],
            MODEL_PATH: [f"{name}Request" for name in first],
            PREDICT_PATH: [f"Predict{name}Request" for name in first],
            **{path: [f"Infer{name}Request" for name in every] for path in INFER_PATHS},
        }
        responses = {
            ROOT_PATH: [f"{name}Response" for name in default],
            MODEL_PATH: [f"{name}Response" for name in first],
            PREDICT_PATH: [f"Predict{name}Response" for name in first],
        }
        paths = document["paths"]
        for path, names in requests.items():
            paths[path]["post"]["requestBody"] = {"required": True, "content": _json(names)}
        for path, names in responses.items():
            paths[path]["post"]["responses"]["200"]["content"] = _json(names)


def _json(names: Iterable[str]) -> dict[str, Any]:
    """Return the content of a body that has one of the named schemas."""
    schemas = [reference(name) for name in names]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {"application/json": {"schema": schema}}


def _with_examples(schema: dict[str, Any], tasks: ServedTasks) -> dict[str, Any]:
    """Return a schema with only the examples that the loaded models accept."""
    texts = [json.dumps(example) for example in schema.get("examples", ())]
    # without the quotes around a JSON string
    mask_token = json.dumps(tasks.mask_token)[1:-1]
    examples = [
        json.loads(text.replace(_MASK, mask_token))
        for text in texts
        if tasks.pairs or "text_pair" not in text
    ]
    return schema | {"examples": examples} if examples else schema
