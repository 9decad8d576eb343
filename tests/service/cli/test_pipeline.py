"""Pipeline of rows: order, full batches, bounded memory and termination."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import pytest

from fillmask.cli import pipeline
from fillmask.cli.errors import CommandError, RowError
from fillmask.cli.formats.base import Block
from fillmask.cli.formats.output import problem_answer
from fillmask.cli.pipeline import Item, RequestBlock, RowPipeline
from fillmask.cli.tasks import rows_of
from fillmask.errors import InvalidRequestError
from fillmask.models.served_model import ServedModel
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.pipeline import Inputs
from tests.service.cli.command_line import block_of, dice
from tests.service.cli.fake_model import FakeModel


class Written:
    """Writer that records its rows and answers."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.answers: list[bytes] = []
        self.threads: set[str] = set()

    def write(self, block: Block, answers: Sequence[bytes]) -> None:
        assert len(block) == len(answers)
        self.numbers += range(block.first, block.first + len(block))
        self.answers += answers
        self.threads.add(threading.current_thread().name)


def blocks(items: Sequence[Item], size: int) -> Iterator[RequestBlock]:
    for first in range(0, len(items), size):
        some = items[first : first + size]
        yield block_of(first, len(some)), some


def questions(count: int) -> list[Item]:
    """Return requests whose texts are numbers."""
    return [Inputs([str(number)], [FillMaskParameters()]) for number in range(count)]


def make_pipeline(fake: FakeModel) -> RowPipeline:
    return RowPipeline(rows_of("fill-mask"), cast("ServedModel", fake), batch_tokens=10)


async def run(
    fake: FakeModel,
    asked: Iterator[RequestBlock],
    write: Callable[[Block, Sequence[bytes]], None],
) -> None:
    """Run a pipeline and check that no asyncio task remains."""
    tasks = asyncio.all_tasks()
    try:
        async with asyncio.timeout(30):
            await make_pipeline(fake).run(asked, write)
    finally:
        assert asyncio.all_tasks() == tasks
        assert fake.at_work == 0


async def until(happened: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    while not happened():  # noqa: ASYNC110 - no event exists
        await asyncio.sleep(0.001)


def answer_of(number: int) -> bytes:
    """Return the answer of FakeModel to a number, as JSON."""
    return b'[{"score":0.5,"token":1,"token_str":"%d","sequence":""}]' % number


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_answers_are_written_in_the_order_of_rows(size: int) -> None:
    # Rows take different times to fill. The writer runs outside of the event loop's thread.
    rng = dice(size)

    async def answering(_text: str) -> None:
        for _ in range(rng.randint(0, 20)):
            await asyncio.sleep(0)

    fake, written = FakeModel(answering), Written()
    await run(fake, blocks(questions(500), size), written.write)
    assert written.numbers == list(range(500))
    assert written.answers == [answer_of(number) for number in range(500)]
    assert fake.most_at_work > 1
    assert threading.current_thread().name not in written.threads


async def test_rows_that_cannot_be_filled_are_problems() -> None:
    # The problem of a row is in the row's place in the output.
    async def answering(text: str) -> None:
        if text == "1":
            raise InvalidRequestError("not this one")

    items = questions(4)
    items[2] = "nor this"
    written = Written()
    await run(FakeModel(answering), blocks(items, 4), written.write)
    problems = [problem_answer("not this one"), problem_answer("nor this")]
    assert written.answers == [answer_of(0), *problems, answer_of(3)]


@pytest.mark.parametrize(
    ("accepted_tokens", "max_bytes", "json_bytes"),
    [(10**9, 2**27, 1), (0, 2, 1), (0, 1000, 900)],
    ids=["tokens", "texts", "plans"],
)
async def test_no_more_rows_begin_while_enough_waits(
    monkeypatch: pytest.MonkeyPatch, accepted_tokens: int, max_bytes: int, json_bytes: int
) -> None:
    # Two rows are in progress, so that the workers have passes when the first row ends.
    monkeypatch.setattr(pipeline, "_MAX_BYTES", max_bytes)
    monkeypatch.setattr(pipeline, "_LONG_ANSWERS_BYTES", 1)
    fake = FakeModel(lambda _text: asyncio.sleep(0.001))
    fake.accepted_tokens, fake.json_bytes = accepted_tokens, json_bytes
    written = Written()
    await run(fake, blocks(questions(40), 8), written.write)
    assert fake.most_at_work == 2
    assert written.numbers == list(range(40))


@pytest.mark.parametrize("item", [Inputs(["x"], [FillMaskParameters()]), "an invalid row"])
@pytest.mark.parametrize("limits", [{"_MAX_ROWS": 20}, {"_MAX_BYTES": 20 * 18}])
async def test_rows_that_are_not_written_are_bounded(
    monkeypatch: pytest.MonkeyPatch, item: Item, limits: dict[str, int]
) -> None:
    # The answer of any row has at least 18 bytes. Those that wait for a slow writer count too.
    for name, limit in {"_LONG_ANSWERS_BYTES": 1, **limits}.items():
        monkeypatch.setattr(pipeline, name, limit)
    written, ahead = Written(), []

    def asked() -> Iterator[RequestBlock]:
        for block, some in blocks([item] * 200, 5):
            ahead.append(block.first + len(some) - len(written.numbers))
            yield block, some

    def write(block: Block, answers: Sequence[bytes]) -> None:
        threading.Event().wait(0.002)
        written.write(block, answers)

    await run(FakeModel(lambda _text: asyncio.sleep(0.0001)), asked(), write)
    assert written.numbers == list(range(200))
    # the reader is up to two blocks ahead of the pipeline
    assert max(ahead) <= 20 + 3 * 5


async def test_long_answers_do_not_wait_for_their_block(monkeypatch: pytest.MonkeyPatch) -> None:
    # The size of unwritten answers is limited even within one block.
    monkeypatch.setattr(pipeline, "_LONG_ANSWERS_BYTES", 150)
    lengths = []

    def write(block: Block, answers: Sequence[bytes]) -> None:
        assert len(block) == len(answers)
        lengths.append(len(answers))

    await run(FakeModel(), blocks(questions(9), 9), write)
    assert sum(lengths) == 9
    assert max(lengths) == 3


@pytest.mark.parametrize(("write_every_s", "cancelled"), [(0.0, False), (1e9, True)])
async def test_a_row_that_takes_long_holds_up_no_answers(
    monkeypatch: pytest.MonkeyPatch, write_every_s: float, *, cancelled: bool
) -> None:
    # If the process is killed, few answers are lost. A cancelled pipeline writes them all.
    monkeypatch.setattr(pipeline, "_WRITE_EVERY_S", write_every_s)
    written, go = Written(), asyncio.Event()

    async def answering(text: str) -> None:
        if text == "5":
            await go.wait()

    async with asyncio.timeout(30):
        fake = FakeModel(answering)
        flowing = asyncio.create_task(
            make_pipeline(fake).run(blocks(questions(20), 20), written.write)
        )
        await until(lambda: len(written.numbers) >= 5 or cancelled)
        await until(lambda: fake.at_work == 1)
        assert not flowing.done()
        if cancelled:
            await asyncio.sleep(0.05)
            flowing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await flowing
            assert fake.at_work == 0
        else:
            go.set()
            await flowing
    assert written.numbers == list(range(5 if cancelled else 20))


@pytest.mark.parametrize("kind", ["reading", "answering", "writing"])
async def test_failure_is_raised_after_the_rows_before_it(kind: str) -> None:
    written = Written()
    items = questions(50)

    async def answering(text: str) -> None:
        if kind == "answering" and text == "23":
            raise RuntimeError("here")
        await asyncio.sleep(0)

    def asked() -> Iterator[RequestBlock]:
        for block, some in blocks(items, 10):
            if kind == "reading" and block.first == 20:
                raise CommandError("here")
            yield block, some

    def write(block: Block, answers: Sequence[bytes]) -> None:
        if kind == "writing" and block.first == 20:
            raise RowError("here")
        written.write(block, answers)

    with pytest.raises((CommandError, RuntimeError), match="here"):
        await run(FakeModel(answering), asked(), write)
    assert written.numbers == list(range(23 if kind == "answering" else 20))


async def test_end_does_not_wait_for_the_reader() -> None:
    # The reader of a silent stream may block forever.
    never = threading.Event()

    def asked() -> Iterator[RequestBlock]:
        yield from blocks(questions(3), 3)
        never.wait()

    def write(_block: Block, _answers: Sequence[bytes]) -> None:
        raise RowError("here")

    try:
        with pytest.raises(RowError, match="here"):
            await run(FakeModel(), asked(), write)
    finally:
        never.set()
