"""What the endpoints answer with, once the model is loaded."""

from dataclasses import dataclass

from starlette.applications import Starlette

from service.batcher import Batcher
from service.errors import NotFoundError, NotReadyError, quote
from service.fill_mask import FillMask
from service.probe import Probe
from service.schemas import InfoBody
from service.scoring import Scoring


@dataclass(frozen=True, slots=True)
class Served:
    """A model that is served.

    Attributes:
        fill_mask: the use case.
        scoring: the other.
        batcher: where both have their passes computed.
        probe: asks it whether it answers.
        info: its name and what may be asked of it.
    """

    fill_mask: FillMask
    scoring: Scoring
    batcher: Batcher
    probe: Probe
    info: InfoBody


def served_by(app: Starlette, name: str | None = None) -> Served:
    """The model of an application.

    Args:
        app: the application, with its `Health` at `state.health`.
        name: the model's, where the caller names one.

    Raises:
        NotReadyError: nothing is served yet.
        NotFoundError: another model is served.
    """
    served: Served | None = getattr(app.state, "served", None)
    if served is None:
        raise NotReadyError(app.state.health.reason or "The service is starting.")
    if name is not None and name != served.info.name:
        raise NotFoundError(
            f"There is no model {quote(name)} here; {quote(served.info.name)} is served."
        )
    return served


async def refuse_if_not_ready(app: Starlette, name: str | None = None) -> None:
    """See whether the model of an application can answer.

    Args:
        app: the application.
        name: the model's, where the caller names one.

    Raises:
        NotReadyError: it cannot.
        NotFoundError: another model is served.
    """
    served = served_by(app, name)
    if (reason := app.state.health.reason or await served.probe.failure()) is not None:
        raise NotReadyError(reason)
