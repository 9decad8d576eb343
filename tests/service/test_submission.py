"""What one caller waits for."""

import asyncio

import pytest

from service.batch import Fills
from service.submission import Submission
from tests.service.fake_runtime import text


def fills() -> Fills:
    """An answer like no other."""
    ids = text(1).input_ids[None, :]
    return Fills(ids, ids.astype("float32"), ids.astype("float32"))


def test_answers_come_in_the_order_of_the_requests() -> None:
    """However they were computed."""

    async def scenario() -> None:
        first, second = fills(), fills()
        submission = Submission(asyncio.get_running_loop().create_future(), 2)
        submission.settle(1, second)
        assert not submission.future.done()
        submission.settle(0, first)
        assert await submission.future == [first, second]

    asyncio.run(scenario())


def test_the_first_failure_is_the_answer() -> None:
    """What comes after it does not matter."""

    async def scenario() -> None:
        submission = Submission(asyncio.get_running_loop().create_future(), 2)
        submission.settle(1, ValueError("one"))
        submission.settle(0, KeyError("two"))
        with pytest.raises(ValueError, match="one"):
            await submission.future

    asyncio.run(scenario())
