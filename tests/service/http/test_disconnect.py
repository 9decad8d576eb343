"""A caller who leaves: its request ends; and nothing else is taken for it."""

import asyncio

import pytest
from starlette.types import Message

from service.http import disconnect
from service.http.disconnect import CancelOnDisconnect, ClientDisconnectedError


class Connection:
    """Tells of the end of a connection once it has ended."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.watched = asyncio.Event()
        self.watch_is_over = False

    async def receive(self) -> Message:
        """As a server's, after the body."""
        self.watched.set()
        try:
            await self.ended.wait()
        finally:
            self.watch_is_over = True
        return {"type": "http.disconnect"}


@pytest.fixture
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disconnect, "PATIENCE_S", 0)


@pytest.fixture
def connection() -> Connection:
    """A connection that has not ended."""
    return Connection()


async def test_an_answer_that_is_there_soon_is_not_watched_for(connection: Connection) -> None:
    """Nobody asks for the end of the connection, then or later."""
    async with asyncio.timeout(20):
        with CancelOnDisconnect(connection.receive):
            await asyncio.sleep(0)
        await asyncio.sleep(2 * disconnect.PATIENCE_S)
        assert not connection.watched.is_set()


@pytest.mark.usefixtures("_no_patience")
async def test_a_caller_who_leaves_is_not_worked_for(connection: Connection) -> None:
    """What is awaited for it is cancelled, and the task is as it was before."""
    async with asyncio.timeout(20):
        work = asyncio.get_running_loop().create_future()
        connection.ended.set()
        with pytest.raises(ClientDisconnectedError), CancelOnDisconnect(connection.receive):
            await work
        assert work.cancelled()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)  # would raise if a cancellation were left over


@pytest.mark.usefixtures("_no_patience")
async def test_a_caller_who_stays_gets_its_answer(connection: Connection) -> None:
    """The watch ends with the work."""
    async with asyncio.timeout(20):
        with CancelOnDisconnect(connection.receive):
            await connection.watched.wait()
        await asyncio.sleep(0)
        assert connection.watch_is_over


@pytest.mark.usefixtures("_no_patience")
async def test_an_error_of_the_work_passes(connection: Connection) -> None:
    """It is not the caller's doing."""

    async def work() -> None:
        await connection.watched.wait()
        raise ValueError("of the work")

    async with asyncio.timeout(20):
        with pytest.raises(ValueError, match="of the work"), CancelOnDisconnect(connection.receive):
            await work()


@pytest.mark.usefixtures("_no_patience")
@pytest.mark.parametrize("leaves", [False, True])
async def test_a_server_that_gives_up_is_not_a_caller_who_left(
    connection: Connection,
    leaves: bool,  # noqa: FBT001 - pytest passes it
) -> None:
    """Whether the caller leaves at that moment or not, the task is cancelled."""
    async with asyncio.timeout(20):

        async def request() -> None:
            with CancelOnDisconnect(connection.receive):
                await asyncio.get_running_loop().create_future()

        task = asyncio.create_task(request())
        await connection.watched.wait()
        if leaves:
            connection.ended.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
