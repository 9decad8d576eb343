"""Who uses something that is to be closed once nobody does."""

import asyncio


class Uses:
    """Counts `with` blocks. For one event loop."""

    __slots__ = ("_count", "_none")

    def __init__(self) -> None:
        self._count = 0
        self._none: asyncio.Future[None] | None = None

    def __enter__(self) -> None:
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        if not self._count and self._none is not None and not self._none.done():
            self._none.set_result(None)

    async def none(self) -> None:
        """Until nobody uses it; to be asked once nobody can begin to any more."""
        if self._count:
            self._none = asyncio.get_running_loop().create_future()
            await self._none
