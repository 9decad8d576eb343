"""The row pipeline, which processes many rows at a time in bounded memory."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from fillmask.cli.formats.base import Block
from fillmask.cli.formats.output import Write, problem_answer
from fillmask.cli.tasks import TaskRows
from fillmask.engine.pacing import QueueFeed
from fillmask.errors import InvalidRequestError
from fillmask.models.served_model import ServedModel
from fillmask.tasks.pipeline import Inputs

# limits for started rows without a written answer, in rows and in bytes
_MAX_ROWS = 4096
_MAX_BYTES = 2**27
_BYTES_PER_CHAR = 10  # of a row, until its plan tells what it takes
# The pipeline writes ready answers before the end of their block if they have this size or if the
# last write is this old.
_LONG_ANSWERS_BYTES = 2**20
_WRITE_EVERY_S = 1.0

Item = Inputs[Any] | str  # the text of a row with its parameters, or the row's problem
RequestBlock = tuple[Block, Sequence[Item]]


@dataclass(slots=True)
class _StartedRow:
    """A started row without a written answer."""

    block: Block
    place: int  # in its block
    size_bytes: int  # what it takes with its plan, and in the end with its answer


class RowPipeline:
    """Pipeline that runs a task for the rows of a file or a stream.

    Args:
        batch_tokens: token budget of one batch, times the number of workers.
    """

    def __init__(self, task: TaskRows, model: ServedModel, batch_tokens: int) -> None:
        self._task = task
        self._pipeline = model.pipeline(task.task)
        self._feed = QueueFeed(model.batcher, batch_tokens)
        # with a task for the answer of each row; None marks the end
        self._rows: asyncio.Queue[tuple[_StartedRow, asyncio.Task[bytes]] | None] = asyncio.Queue()
        self._ready: list[tuple[_StartedRow, bytes]] = []
        self._ready_bytes = 0
        self._last_write_s = -math.inf
        # started rows, what they take, and what those with an answer take
        self._unwritten = self._bytes = self._done_bytes = 0
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
            while started := await self._rows.get():
                row, running = started
                if not running.done() and loop.time() - self._last_write_s >= _WRITE_EVERY_S:
                    await self._write_ready(write)
                self._ready.append((row, await running))
                self._ready_bytes += row.size_bytes
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
        ready, written_bytes = self._ready, self._ready_bytes
        self._ready, self._ready_bytes = [], 0
        if not ready:
            return
        (first, _), (last, _) = ready[0], ready[-1]
        part = first.block.slice(first.place, last.place + 1)
        answers = [answer for _, answer in ready]
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, write, part, answers)
        self._last_write_s = loop.time()
        self._unwritten -= len(ready)
        self._bytes -= written_bytes
        self._done_bytes -= written_bytes
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
                    row = _StartedRow(block, place, _BYTES_PER_CHAR * _chars_of(item))
                    await self._wait_for_room(row.size_bytes)
                    self._unwritten += 1
                    self._bytes += row.size_bytes
                    running = asyncio.create_task(self._answer(row, item))
                    self._rows.put_nowait((row, running))
                    await asyncio.sleep(0)  # lets the row's task submit a short text to the batcher
        finally:
            self._rows.put_nowait(None)
            upcoming.cancel()

    async def _answer(self, row: _StartedRow, item: Item) -> bytes:
        if isinstance(item, str):
            answer = problem_answer(item)
        else:
            answer = await self._feed.run(self._compute(row, item))
        self._resize(row, _chars_of(item) + len(answer))
        self._done_bytes += row.size_bytes
        return answer

    async def _compute(self, row: _StartedRow, inputs: Inputs[Any]) -> bytes:
        try:
            plan = await self._pipeline.plan(inputs)
            size = plan.size
            self._resize(row, _chars_of(inputs) + size.json_bytes + size.work_bytes)
            [result] = await self._pipeline.run(plan)
        except InvalidRequestError as error:
            return problem_answer(error.text)
        if plan.is_large:
            return await asyncio.to_thread(self._task.answer, result)
        return self._task.answer(result)

    def _resize(self, row: _StartedRow, size_bytes: int) -> None:
        self._bytes += size_bytes - row.size_bytes
        row.size_bytes = size_bytes

    async def _wait_for_room(self, size_bytes: int) -> None:
        await self._feed.wait_for_room(
            lambda: self._unwritten >= _MAX_ROWS or self._done_bytes >= _MAX_BYTES,
            lambda: self._bytes + size_bytes > _MAX_BYTES,
        )

    async def _cancel(self, starting: asyncio.Task[None]) -> None:
        starting.cancel()
        answers = []
        while not self._rows.empty():
            if started := self._rows.get_nowait():
                answers.append(started[1])
                started[1].cancel()
        await asyncio.gather(starting, *answers, return_exceptions=True)
        # no wait, because a thread may be blocked on standard input
        self._threads.shutdown(wait=False, cancel_futures=True)


def _chars_of(item: Item) -> int:
    return 0 if isinstance(item, str) else sum(map(len, item.texts))
