"""A model as the endpoints answer with it."""

from dataclasses import dataclass, field

from pydantic import BaseModel, Field

from service.bundles.bundle import Architecture
from service.concurrency import UseCounter
from service.engine.batcher import Batcher
from service.engine.probe import Probe
from service.tasks.fill_mask import FillMaskPipeline
from service.tasks.options import Limits
from service.tasks.scoring import ScoringPipeline


class ModelInfo(BaseModel):
    """The model that is served, and the limits."""

    name: str
    license: str
    description: str
    mask_token: str
    limits: Limits
    precision: str
    architecture: Architecture
    version: str = Field(description="of the service")
    threads: int = Field(description="texts that are computed at the same time")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that is served.

    Attributes:
        fill_mask: the use case.
        scoring: the other.
        batcher: where both have their passes computed.
        probe: asks it whether it answers.
        info: its name and what may be asked of it.
        uses: to be entered by who asks it for anything, so that it is not closed meanwhile.
    """

    fill_mask: FillMaskPipeline
    scoring: ScoringPipeline
    batcher: Batcher
    probe: Probe
    info: ModelInfo
    uses: UseCounter = field(default_factory=UseCounter)
