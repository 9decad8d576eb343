"""Many rows at a time through the batcher, answered in their order, in bounded memory."""

import asyncio
import contextlib
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from service.api.fill_response import fills_to_json
from service.cli.formats.answers import Problem
from service.cli.formats.base import Block, Write
from service.cli.requests import Item, RequestBlock, RowRequest
from service.errors import InvalidRequestError
from service.tasks.fill_mask import FillMaskPipeline
from service.tasks.options import DEFAULT_TOP_K

# batches that wait for each worker, so that none is idle while the next texts are tokenized
_WAITING_BATCHES = 8
# Rows on their way at least: a row's passes wait in one heap, the next row's must not begin after.
_LEAST_ROWS = 2
# rows begun and not written yet at most, and characters of their texts and answers
_MOST_ROWS = 4096
_MOST_CHARS = 2**25
_CHARS_A_FILL = 150  # beside its sequence
# answers that are written before their block has ended: long ones, and such as wait for long
_LONG_ANSWERS_BYTES = 2**20
_WRITTEN_EVERY_S = 1.0
# passes that end make room as well, and only rows that end tell of it
_LOOK_AGAIN_S = 0.01


@dataclass(frozen=True, slots=True)
class _InFlightRow:
    """A row on its way.

    Attributes:
        answer: what it will be answered.
        block: the row's.
        place: the row's in it.
        chars: of its text and its answer, about.
    """

    answer: asyncio.Task[bytes]
    block: Block
    place: int
    chars: int

    @property
    def is_last(self) -> bool:
        """Whether no row of the block follows."""
        return self.place + 1 == len(self.block)


class RowPipeline:
    """Answers the rows of a file.

    Rows begin while less waits in the batcher than keeps its workers busy. So batches are full
    whether a row takes one pass or thousands, and nothing piles up.

    Args:
        fill_mask: the use case.
        field: what the texts are called, for errors.
        mask_token: the model's.
        batch_tokens: of a full batch on each worker.
    """

    def __init__(
        self, fill_mask: FillMaskPipeline, field: str, mask_token: str, batch_tokens: int
    ) -> None:
        self._fill_mask = fill_mask
        self._field = field
        self._mask_token = mask_token
        self._enough_tokens = _WAITING_BATCHES * batch_tokens
        self._begun: asyncio.Queue[_InFlightRow | None] = asyncio.Queue()  # None is the end
        self._ready: list[tuple[_InFlightRow, bytes]] = []
        self._ready_bytes = 0
        self._written_s = -math.inf
        self._on_their_way = self._unwritten = self._chars = 0
        self._changed = asyncio.Event()
        # for reading and for writing, which would hold up the event loop
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="fillmask-files")

    async def run(self, asked: Iterator[RequestBlock], write: Write) -> None:
        """Answer all rows and have them written in order; once.

        Args:
            asked: of each block its rows, read on another thread.
            write: takes a block or a part of it with the answers, on another thread.

        Raises:
            CommandError: what reading raises, after all rows before it are written; or what
                writing raises.
            Exception: the model has failed.
        """
        feeding = asyncio.create_task(self._feed(asked))
        try:
            while row := await self._begun.get():
                if not row.answer.done() and self._waits_for_long():
                    await self._write_ready(write)
                answer = await row.answer
                self._ready.append((row, answer))
                self._ready_bytes += len(answer)
                if row.is_last or self._ready_bytes >= _LONG_ANSWERS_BYTES:
                    await self._write_ready(write)
            await feeding
        except BaseException:
            await self._write_ready(write)
            raise
        finally:
            await self._end(feeding)

    def _waits_for_long(self) -> bool:
        return asyncio.get_running_loop().time() - self._written_s >= _WRITTEN_EVERY_S

    async def _write_ready(self, write: Write) -> None:
        """Have the answers that are ready written; they are of one block."""
        ready, self._ready, self._ready_bytes = self._ready, [], 0
        if not ready:
            return
        (first, _), (last, _) = ready[0], ready[-1]
        part = first.block.part(first.place, last.place + 1)
        answers = [answer for _, answer in ready]
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, write, part, answers)
        self._written_s = loop.time()
        self._unwritten -= len(ready)
        self._chars -= sum(row.chars for row, _ in ready)
        self._changed.set()

    async def _feed(self, asked: Iterator[RequestBlock]) -> None:
        """Begin one row after the other, whenever there is room."""
        loop = asyncio.get_running_loop()
        upcoming = loop.run_in_executor(self._threads, next, asked, None)
        try:
            while batch := await upcoming:
                upcoming = loop.run_in_executor(self._threads, next, asked, None)
                block, items = batch
                for place, item in enumerate(items):
                    chars = self._chars_of(item)
                    await self._room_for(chars)
                    self._unwritten += 1
                    self._chars += chars
                    answer = asyncio.create_task(self._answer(item))
                    self._begun.put_nowait(_InFlightRow(answer, block, place, chars))
                    await asyncio.sleep(0)  # it has reached the batcher now, if it is short
        finally:
            self._begun.put_nowait(None)
            upcoming.cancel()

    async def _answer(self, item: Item) -> bytes:
        if isinstance(item, Problem):
            return item.line
        self._on_their_way += 1
        try:
            answer = await self._fill_mask.fill([item.text], item.options, self._field)
            if answer.long:
                return await asyncio.to_thread(fills_to_json, answer, single=True)
            return fills_to_json(answer, single=True)
        except InvalidRequestError as error:
            return Problem(error.text).line
        finally:
            self._on_their_way -= 1
            self._changed.set()

    async def _room_for(self, chars: int) -> None:
        while self._unwritten >= _MOST_ROWS or (
            self._on_their_way >= _LEAST_ROWS
            and (
                self._chars + chars > _MOST_CHARS
                or self._fill_mask.accepted_tokens >= self._enough_tokens
            )
        ):
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_AGAIN_S):
                    await self._changed.wait()

    def _chars_of(self, item: Item) -> int:
        if not isinstance(item, RowRequest):
            return 0
        masks = 1 if item.options.strategy == "joint" else item.text.count(self._mask_token)
        fills = item.options.top_k or len(item.options.targets or ()) or DEFAULT_TOP_K
        return len(item.text) + masks * fills * (len(item.text) + _CHARS_A_FILL)

    async def _end(self, feeding: asyncio.Task[None]) -> None:
        """Leave nothing on its way."""
        feeding.cancel()
        answers = []
        while not self._begun.empty():
            if row := self._begun.get_nowait():
                answers.append(row.answer)
                row.answer.cancel()
        await asyncio.gather(feeding, *answers, return_exceptions=True)
        # not for a thread that waits for standard input
        self._threads.shutdown(wait=False, cancel_futures=True)
