"""An event loop on a thread."""

import asyncio

import pytest

from fillmask.concurrency import BackgroundLoop, gather_or_cancel


async def soon(value: int) -> int:
    await asyncio.sleep(0)
    return value


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), OSError()])
def test_an_error_ends_its_coroutine_and_not_the_loop(error: BaseException) -> None:
    loop = BackgroundLoop("errors")

    async def fail() -> None:
        await gather_or_cancel([soon(1), raise_it()])

    async def raise_it() -> int:
        await asyncio.sleep(0)
        raise error

    for _ in range(2):
        with pytest.raises(type(error)):
            loop.run(fail())
        assert loop.run(soon(2)) == 2
    loop.close()
