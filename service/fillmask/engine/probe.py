"""Readiness probe of a model.

The probe succeeds after a recent batch. Otherwise it runs a test pass of one token.
"""

import asyncio
import time

import numpy as np

from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import ModelPass, no_targets
from fillmask.errors import FillMaskError

RECENT_S = 10  # the default period of a Kubernetes probe
TIMEOUT_S = 5


class Probe:
    """Readiness probe of one model. Concurrent checks share one test pass.

    Args:
        token_id: id of the only token in the test pass.
        fills: whether the model fills masks. Without fills, the test pass computes labels.

    Attributes:
        last_failure: result of the last check, None if it succeeded.
    """

    def __init__(self, batcher: Batcher, token_id: int, *, fills: bool = True) -> None:
        self._batcher = batcher
        input_ids = np.full(1, token_id, dtype=np.int64)
        first = np.zeros(1, dtype=np.int64)
        self._test_pass = (
            ModelPass(input_ids, first, top_k=1, target_ids=no_targets(1))
            if fills
            else ModelPass.for_head(input_ids, None, "first")
        )
        self._running: asyncio.Task[str | None] | None = None
        self.last_failure: str | None = None

    async def failure_reason(self) -> str | None:
        """Check that the model computes batches, and return why it doesn't, or None."""
        if time.monotonic() - self._batcher.last_batch_s < RECENT_S:
            self.last_failure = None
            return None
        if self._running is None:
            self._running = asyncio.create_task(self._run_test_pass())
            self._running.add_done_callback(self._store_failure)
        # a cancelled caller must not cancel the check for other callers
        return await asyncio.shield(self._running)

    async def _run_test_pass(self) -> str | None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._batcher.submit([self._test_pass])
        except TimeoutError:
            return f"No test pass has finished within {TIMEOUT_S} s; restart the service."
        except FillMaskError as error:
            return error.text
        except Exception:  # noqa: BLE001 - any error means that the model does not compute
            return "The model fails on a test pass of one token; restart the service."
        return None

    def _store_failure(self, task: asyncio.Task[str | None]) -> None:
        self._running = None
        if not task.cancelled():
            self.last_failure = task.result()
