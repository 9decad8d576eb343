"""A model as the endpoints answer with it."""

from dataclasses import dataclass, field

from service.concurrency import Uses
from service.engine.batcher import Batcher
from service.engine.probe import Probe
from service.schemas import InfoBody
from service.tasks.fill_mask import FillMask
from service.tasks.scoring import Scoring


@dataclass(frozen=True, slots=True)
class Served:
    """A model that is served.

    Attributes:
        fill_mask: the use case.
        scoring: the other.
        batcher: where both have their passes computed.
        probe: asks it whether it answers.
        info: its name and what may be asked of it.
        uses: to be entered by who asks it for anything, so that it is not closed meanwhile.
    """

    fill_mask: FillMask
    scoring: Scoring
    batcher: Batcher
    probe: Probe
    info: InfoBody
    uses: Uses = field(default_factory=Uses)
