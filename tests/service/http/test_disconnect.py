"""A caller who leaves: its request ends; and nothing else is taken for it."""

import asyncio
from collections.abc import Awaitable, Callable

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
    monkeypatch.setattr(disconnect, "WATCH_AFTER_S", 0)


def play(scenario: Callable[[Connection], Awaitable[None]]) -> None:
    """Run a scenario on an event loop."""

    async def run() -> None:
        await asyncio.wait_for(scenario(Connection()), 20)

    asyncio.run(run())


def test_an_answer_that_is_there_soon_is_not_watched_for() -> None:
    """Nobody asks for the end of the connection, then or later."""

    async def scenario(connection: Connection) -> None:
        with CancelOnDisconnect(connection.receive):
            await asyncio.sleep(0)
        await asyncio.sleep(2 * disconnect.WATCH_AFTER_S)
        assert not connection.watched.is_set()

    play(scenario)


@pytest.mark.usefixtures("_no_patience")
def test_a_caller_who_leaves_is_not_worked_for() -> None:
    """What is awaited for it is cancelled, and the task is as it was before."""

    async def scenario(connection: Connection) -> None:
        work = asyncio.get_running_loop().create_future()
        connection.ended.set()
        with pytest.raises(ClientDisconnectedError), CancelOnDisconnect(connection.receive):
            await work
        assert work.cancelled()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)  # would raise if a cancellation were left over

    play(scenario)


@pytest.mark.usefixtures("_no_patience")
def test_a_caller_who_stays_gets_its_answer() -> None:
    """The watch ends with the work."""

    async def scenario(connection: Connection) -> None:
        with CancelOnDisconnect(connection.receive):
            await connection.watched.wait()
        await asyncio.sleep(0)
        assert connection.watch_is_over

    play(scenario)


@pytest.mark.usefixtures("_no_patience")
def test_an_error_of_the_work_passes() -> None:
    """It is not the caller's doing."""

    async def work(connection: Connection) -> None:
        await connection.watched.wait()
        raise ValueError("of the work")

    async def scenario(connection: Connection) -> None:
        with pytest.raises(ValueError, match="of the work"), CancelOnDisconnect(connection.receive):
            await work(connection)

    play(scenario)


@pytest.mark.usefixtures("_no_patience")
@pytest.mark.parametrize("leaves", [False, True])
def test_a_server_that_gives_up_is_not_a_caller_who_left(leaves: bool) -> None:  # noqa: FBT001 - pytest passes it
    """Whether the caller leaves at that moment or not, the task is cancelled."""

    async def scenario(connection: Connection) -> None:
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

    play(scenario)
