"""Whether the model still answers: its last batch is recent, or a small one now goes through."""

import asyncio
import time

import numpy as np

from service.engine.batch import ModelPass, no_targets
from service.engine.batcher import Batcher
from service.errors import FillMaskError

RECENT_S = 10  # as often as Kubernetes asks by default
PATIENCE_S = 5


class Probe:
    """Asks a model whether it answers; as many as ask at a time share one request.

    Args:
        batcher: of the model.
        token_id: what the request is made of.
    """

    def __init__(self, batcher: Batcher, token_id: int) -> None:
        self._batcher = batcher
        self._request = ModelPass(
            input_ids=np.full(1, token_id, dtype=np.int64),
            mask_positions=np.zeros(1, dtype=np.int64),
            top_k=1,
            target_ids=no_targets(1),
        )
        self._running: asyncio.Task[str | None] | None = None
        self._last_failure: str | None = None

    @property
    def last_failure(self) -> str | None:
        """What was found out when somebody last asked."""
        return self._last_failure

    async def failure(self) -> str | None:
        """Why it does not answer, in a sentence; None when it does."""
        if time.monotonic() - self._batcher.last_batch_s < RECENT_S:
            self._last_failure = None
            return None
        if self._running is None:
            self._running = asyncio.create_task(self._ask())
            self._running.add_done_callback(self._forget)
        # one of those who ask may leave, and the others still want to know
        return await asyncio.shield(self._running)

    async def _ask(self) -> str | None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._batcher.submit([self._request])
        except TimeoutError:
            return f"The model has not answered for {PATIENCE_S} s."
        except FillMaskError as error:
            return error.text
        except Exception:  # noqa: BLE001 - whatever it is, the model does not answer
            return "The model fails on a request that it must be able to answer."
        return None

    def _forget(self, task: asyncio.Task[str | None]) -> None:
        self._running = None
        if not task.cancelled():
            self._last_failure = task.result()
