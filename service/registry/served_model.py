"""The served model, which the endpoints and the fillmask command use."""

from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from pydantic import BaseModel, Field

from service.bundles.bundle import Architecture, Bundle
from service.bundles.discovery import Fingerprint
from service.concurrency import UseCounter
from service.engine.batcher import Batcher
from service.engine.probe import Probe
from service.tasks.fill_mask import FillMaskPipeline
from service.tasks.options import Limits
from service.tasks.scoring import ScoringPipeline


class ModelInfo(BaseModel):
    """Description of a served model and its request limits."""

    name: str
    license: str
    description: str
    mask_token: str
    limits: Limits
    precision: str
    architecture: Architecture
    version: str = Field(description="Version of the service.")
    threads: int = Field(description="Maximum number of batches that run at the same time.")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A loaded and verified model.

    Attributes:
        bundle: source of the model.
        fingerprint: state of the bundle's files before the load.
        info: name, limits and sizes, as the API returns them.
        fill_mask: pipeline that fills masks.
        scoring: pipeline that scores texts.
        batcher: batcher of the passes of both pipelines.
        probe: readiness probe of the model.
        closing: exit stack that frees the model.
        in_use: reference count of running requests. `retire` waits until the count is zero.
    """

    bundle: Bundle
    fingerprint: Fingerprint
    info: ModelInfo
    fill_mask: FillMaskPipeline
    scoring: ScoringPipeline
    batcher: Batcher
    probe: Probe
    closing: AsyncExitStack
    in_use: UseCounter = field(default_factory=UseCounter)

    @property
    def name(self) -> str:
        """Name of the model, from its bundle."""
        return self.info.name

    async def aclose(self) -> None:
        """Finish the accepted requests and free the model."""
        await self.closing.aclose()

    async def retire(self) -> None:
        """Close the model once no request uses it."""
        await self.in_use.wait_until_unused()
        await self.aclose()
