"""Result of a request: the outputs of its passes in order, or the first failure."""

import asyncio

import pytest

from fillmask.engine.passes import PassOutputs
from fillmask.engine.pending_requests import PendingRequest
from tests.service.fake_runtime import text


def fills() -> PassOutputs:
    """Return outputs, which the test compares by identity."""
    ids = text(1).input_ids[None, :]
    return PassOutputs(ids, ids.astype("float32"), ids.astype("float32"))


async def test_answers_come_in_the_order_of_the_requests() -> None:
    first, second = fills(), fills()
    submission = PendingRequest(asyncio.get_running_loop().create_future(), 2)
    submission.set_result(1, second)
    assert not submission.future.done()
    submission.set_result(0, first)
    assert await submission.future == [first, second]


async def test_the_first_failure_is_the_answer() -> None:
    submission = PendingRequest(asyncio.get_running_loop().create_future(), 2)
    submission.set_result(1, ValueError("one"))
    submission.set_result(0, KeyError("two"))
    with pytest.raises(ValueError, match="one"):
        await submission.future


async def test_a_request_runs_from_its_first_batch_to_its_last() -> None:
    # Several workers may record its batches in any order.
    submission = PendingRequest(asyncio.get_running_loop().create_future(), 3)
    for started_s, ended_s in ((3, 4), (1, 7), (2, 5)):
        submission.record_run(started_s, ended_s)
    assert (submission.started_s, submission.ended_s) == (1, 7)
