"""The row pipeline, which processes many rows at a time in bounded memory."""

import asyncio
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from fillmask.cli.formats.base import Block
from fillmask.cli.formats.output import Write, problem_answer
from fillmask.cli.requests import Item, RequestBlock, RowRequest
from fillmask.cli.tasks.base import TaskRows
from fillmask.engine.pacing import QueueFeed
from fillmask.errors import InvalidRequestError
from fillmask.models.served_model import ServedModel
from fillmask.tasks.pipeline import is_large

# limits for started rows without a written answer, in rows and in characters of texts and answers
_MAX_ROWS = 4096
_MAX_CHARS = 2**25
# The pipeline writes ready answers before the end of their block if they have this size or if the
# last write is this old.
_LONG_ANSWERS_BYTES = 2**20
_WRITE_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class _InFlightRow:
    """A started row without a written answer."""

    answer: asyncio.Task[bytes]
    block: Block
    place: int  # in its block
    chars: int  # estimate for its text and answer


class RowPipeline:
    """Pipeline that runs a task for the rows of a file or a stream.

    `field` is that of the texts, for messages, and `batch_tokens` the token budget of one batch,
    times the number of workers.
    """

    def __init__(self, task: TaskRows, model: ServedModel, field: str, batch_tokens: int) -> None:
        self._task = task
        self._model = model
        self._field = field
        self._feed = QueueFeed(model.batcher, batch_tokens)
        self._rows: asyncio.Queue[_InFlightRow | None] = asyncio.Queue()  # None marks the end
        self._ready: list[tuple[_InFlightRow, bytes]] = []
        self._ready_bytes = 0
        self._last_write_s = -math.inf
        self._unwritten = self._chars = 0
        # one thread for reading and one for writing, because reads and writes block the event loop
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="fillmask-files")

    async def run(self, blocks: Iterator[RequestBlock], write: Write) -> None:
        """Process all rows and write them in order. A pipeline runs only once.

        Other threads read the blocks, and write each or a part of it with the answers.

        Raises:
            CommandError: `blocks` or `write` raises this error. After an error of `blocks`, the
                pipeline first writes all earlier rows.
            Exception: the model has failed.
        """
        loop = asyncio.get_running_loop()
        starting = asyncio.create_task(self._start_rows(blocks))
        try:
            while row := await self._rows.get():
                if not row.answer.done() and loop.time() - self._last_write_s >= _WRITE_EVERY_S:
                    await self._write_ready(write)
                answer = await row.answer
                self._ready.append((row, answer))
                self._ready_bytes += len(answer)
                is_last = row.place + 1 == len(row.block)
                if is_last or self._ready_bytes >= _LONG_ANSWERS_BYTES:
                    await self._write_ready(write)
            await starting
        except BaseException:
            await self._write_ready(write)
            raise
        finally:
            await self._cancel(starting)

    async def _write_ready(self, write: Write) -> None:
        """Write the ready answers, which belong to one block."""
        ready, self._ready, self._ready_bytes = self._ready, [], 0
        if not ready:
            return
        (first, _), (last, _) = ready[0], ready[-1]
        part = first.block.slice(first.place, last.place + 1)
        answers = [answer for _, answer in ready]
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, write, part, answers)
        self._last_write_s = loop.time()
        self._unwritten -= len(ready)
        self._chars -= sum(row.chars for row, _ in ready)
        self._feed.changed.set()

    async def _start_rows(self, blocks: Iterator[RequestBlock]) -> None:
        """Start the rows in order and wait while too many rows are in flight."""
        loop = asyncio.get_running_loop()
        upcoming = loop.run_in_executor(self._threads, next, blocks, None)
        try:
            while batch := await upcoming:
                upcoming = loop.run_in_executor(self._threads, next, blocks, None)
                block, items = batch
                for place, item in enumerate(items):
                    chars = 0
                    if isinstance(item, RowRequest):
                        bundle = self._model.bundle
                        chars = self._task.estimate_chars(bundle, item.text, item.parameters)
                    await self._wait_for_room(chars)
                    self._unwritten += 1
                    self._chars += chars
                    answer = asyncio.create_task(self._answer(item, chars))
                    self._rows.put_nowait(_InFlightRow(answer, block, place, chars))
                    await asyncio.sleep(0)  # lets the row's task submit a short text to the batcher
        finally:
            self._rows.put_nowait(None)
            upcoming.cancel()

    async def _answer(self, item: Item, chars: int) -> bytes:
        if isinstance(item, str):
            return problem_answer(item)
        return await self._feed.run(self._compute(item, chars))

    async def _compute(self, item: RowRequest, chars: int) -> bytes:
        try:
            result = await self._task.run(self._model, item.text, item.parameters, self._field)
            if is_large(0, chars):
                return await asyncio.to_thread(self._task.answer, result)
            return self._task.answer(result)
        except InvalidRequestError as error:
            return problem_answer(error.text)

    async def _wait_for_room(self, chars: int) -> None:
        await self._feed.wait_for_room(
            lambda: self._unwritten >= _MAX_ROWS,
            lambda: self._chars + chars > _MAX_CHARS,
        )

    async def _cancel(self, starting: asyncio.Task[None]) -> None:
        starting.cancel()
        answers = []
        while not self._rows.empty():
            if row := self._rows.get_nowait():
                answers.append(row.answer)
                row.answer.cancel()
        await asyncio.gather(starting, *answers, return_exceptions=True)
        # no wait, because a thread may be blocked on standard input
        self._threads.shutdown(wait=False, cancel_futures=True)
