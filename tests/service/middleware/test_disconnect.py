"""Cancellation of requests whose clients disconnect."""

import asyncio

import pytest
from starlette.types import Message

from fillmask.concurrency import gather_or_cancel
from fillmask.middleware import cancellation
from fillmask.middleware.cancellation import cancel_on_disconnect
from fillmask.middleware.transfer import ClientDisconnectedError


class Connection:
    """Connection that ends when the test sets the event `ended`."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.watched = asyncio.Event()
        self.watch_is_over = False

    async def receive(self) -> Message:
        """Wait for the connection's end, like a server's `receive` after the body."""
        self.watched.set()
        try:
            await self.ended.wait()
        finally:
            self.watch_is_over = True
        return {"type": "http.disconnect"}


@pytest.fixture
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cancellation, "WATCH_AFTER_S", 0)


@pytest.fixture
def connection() -> Connection:
    return Connection()


async def test_fast_answer_starts_no_watch(connection: Connection) -> None:
    async with asyncio.timeout(20):
        with cancel_on_disconnect(connection.receive):
            await asyncio.sleep(0)
        await asyncio.sleep(2 * cancellation.WATCH_AFTER_S)
        assert not connection.watched.is_set()


@pytest.mark.usefixtures("_no_patience")
async def test_work_for_a_disconnected_client_is_cancelled(connection: Connection) -> None:
    # The work ends before the context manager raises its error.
    # The calling task has no pending cancellation.
    async with asyncio.timeout(20):
        work = asyncio.get_running_loop().create_future()
        connection.ended.set()
        with pytest.raises(ClientDisconnectedError), cancel_on_disconnect(connection.receive):
            await work
        assert work.cancelled()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)  # raises if a cancellation remains


@pytest.mark.usefixtures("_no_patience")
async def test_watch_ends_with_the_work(connection: Connection) -> None:
    async with asyncio.timeout(20):
        with cancel_on_disconnect(connection.receive):
            await connection.watched.wait()
        await asyncio.sleep(0)
        assert connection.watch_is_over


@pytest.mark.usefixtures("_no_patience")
async def test_disconnect_at_the_time_of_an_error_is_a_disconnect(connection: Connection) -> None:
    # The error and the cancellation reach the group in the same iteration of the event loop.
    async def fail() -> None:
        await connection.watched.wait()
        connection.ended.set()
        raise LookupError

    async with asyncio.timeout(20):
        with pytest.raises(ClientDisconnectedError), cancel_on_disconnect(connection.receive):
            await gather_or_cancel([asyncio.Event().wait(), fail()])
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0


@pytest.mark.usefixtures("_no_patience")
@pytest.mark.parametrize("leaves", [False, True])
async def test_cancellation_by_the_server_is_not_a_disconnect(
    connection: Connection,
    leaves: bool,  # noqa: FBT001 - pytest passes it
) -> None:
    # The result is the same if the client disconnects at the same moment.
    async with asyncio.timeout(20):

        async def request() -> None:
            with cancel_on_disconnect(connection.receive):
                await asyncio.get_running_loop().create_future()

        task = asyncio.create_task(request())
        await connection.watched.wait()
        if leaves:
            connection.ended.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
