"""The served model, which the endpoints and the fillmask command use."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pydantic import BaseModel, Field, JsonValue

from fillmask.bundles.bundle import Architecture, Bundle
from fillmask.bundles.description import ProblemType
from fillmask.bundles.description import Task as BundleTask
from fillmask.bundles.discovery import Fingerprint
from fillmask.engine.batcher import Batcher
from fillmask.engine.probe import Probe
from fillmask.errors import InvalidRequestError, quote
from fillmask.models.graph_choice import GraphKind
from fillmask.parameters.limits import Limits
from fillmask.tasks.pipeline import Pipeline
from fillmask.tasks.task import CLASSIFY, Task


class ModelInfo(BaseModel):
    """Description of a served model and its request limits."""

    name: str
    license: str
    description: str
    tasks: tuple[BundleTask, ...] = Field(description="Tasks of the model.")
    pairs: bool = Field(description="True if the model reads pairs of texts.")
    labels: tuple[str, ...] | None = Field(
        description="Labels of texts or of tokens, null for a model without them."
    )
    problem_type: ProblemType | None = Field(
        description="Meaning of the labels, null without the task text-classification."
    )
    mask_token: str
    limits: Limits
    precision: str
    graph: GraphKind = Field(
        description="fused if the package fillmask-native computes the int8 layers, else stock."
    )
    architecture: Architecture
    version: str = Field(description="Version of the service.")
    threads: int = Field(description="Maximum number of batches that run at the same time.")
    # the fields of text-embeddings-inference
    model_id: str
    model_sha: None = None
    model_dtype: str
    model_type: dict[str, dict[str, JsonValue]] = Field(
        description="reranker, classifier or embedding, empty for a model that only fills masks."
    )
    served_model_name: str
    max_concurrent_requests: int = Field(description="How many of the longest texts can wait.")
    max_input_length: int
    max_batch_tokens: int
    max_batch_requests: None = None
    max_client_batch_size: int
    auto_truncate: bool
    tokenization_workers: int


class UseCounter:
    """A count of `with` blocks on one event loop, which can be awaited until it is zero."""

    __slots__ = ("_count", "_unused")

    def __init__(self) -> None:
        self._count = 0
        self._unused: asyncio.Future[None] | None = None

    def __enter__(self) -> None:
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        if not self._count and self._unused is not None and not self._unused.done():
            self._unused.set_result(None)

    async def wait_until_unused(self) -> None:
        """Wait until the count is zero. No new `with` block may start during the wait."""
        if self._count:
            self._unused = asyncio.get_running_loop().create_future()
            await self._unused


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A loaded and verified model.

    Attributes:
        bundle: source of the model.
        fingerprint: state of the bundle's files before the load.
        info: name, limits and sizes, as the API returns them.
        pipelines: pipelines by name of the task.
        batcher: batcher of the passes of all pipelines.
        closing: exit stack that frees the model.
        in_use: reference count of running requests. `retire` waits until the count is zero.
    """

    bundle: Bundle
    fingerprint: Fingerprint
    info: ModelInfo
    pipelines: Mapping[str, Pipeline[Any, Any, Any]]
    batcher: Batcher
    probe: Probe
    closing: AsyncExitStack
    in_use: UseCounter = field(default_factory=UseCounter)

    @property
    def name(self) -> str:
        return self.info.name

    def pipeline(self, task: Task) -> Pipeline[Any, Any, Any]:
        """Return the pipeline of a task, or raise InvalidRequestError if the model lacks it."""
        return self.pipelines.get(task.name) or self.refuse(task.of_bundle)

    @property
    def reranks(self) -> bool:
        """Whether the model classifies pairs and has one label, their relevance."""
        has_one_label = len(self.info.labels or ()) == 1
        return self.info.pairs and has_one_label and CLASSIFY.of_bundle in self.info.tasks

    def require_reranking(self) -> Pipeline[Any, Any, Any]:
        """Return the pipeline that classifies, or raise InvalidRequestError."""
        pipeline = self.pipeline(CLASSIFY)
        if not self.reranks:
            labels = len(self.info.labels or ())
            raise InvalidRequestError(
                f"Model {quote(self.name)} cannot rerank, which needs a model with one label that "
                f"reads pairs (got {labels} {'label' if labels == 1 else 'labels'}"
                f"{'' if self.info.pairs else ', no pairs'}); classify with it."
            )
        return pipeline

    def refuse(self, task: BundleTask) -> NoReturn:
        """Raise the InvalidRequestError for a task that the model lacks."""
        raise InvalidRequestError(
            f"Model {quote(self.name)} does not have the task {task}; use a task of this model: "
            f"{', '.join(self.info.tasks)}."
        )

    async def aclose(self) -> None:
        """Finish the accepted requests and free the model."""
        await self.closing.aclose()

    async def retire(self) -> None:
        await self.in_use.wait_until_unused()
        await self.aclose()
