"""Estimated size of generated responses, an upper bound of their real size."""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from fillmask.bundles.description import Classification
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.batcher import Batcher
from fillmask.engine.passes import BatchOutputs
from fillmask.errors import InvalidRequestError
from fillmask.tasks.classify.parameters import ClassifyParameters, FunctionToApply
from fillmask.tasks.classify.pipeline import ClassificationPipeline
from fillmask.tasks.fill_mask.parameters import FillMaskParameters
from fillmask.tasks.pipeline import Inputs
from fillmask.tasks.result import RejectedText
from fillmask.tasks.score.parameters import ScoreParameters
from fillmask.tasks.score.pipeline import ScoringPipeline
from fillmask.tasks.task import CLASSIFY, FILL_MASK, SCORE
from tests.service.api.test_response_memory import memory_bytes
from tests.service.tiny import MAX_TOKENS, SPECIAL, VOCABULARY, Tiny
from tests.service.tiny_calls import make_pipeline, make_tokenizer

T = TypeVar("T")
FUNCTIONS: list[FunctionToApply] = ["softmax", "sigmoid", "none"]
PIECES = ["[MASK]", "the", "walks", ".", "é", "😀", "\1", '"', "\\", "\u2028", "\t" * 50]
TEXTS = st.lists(st.just("[MASK]") | st.sampled_from(PIECES), min_size=1, max_size=20).map(" ".join)
UNMASKED = st.lists(st.sampled_from(PIECES[1:]), min_size=10, max_size=25).map(" ".join)
TARGETS = st.lists(
    st.sampled_from(["dog", f"a{' ' * 200}cat", "##s", "walks", "zyx", "\1" * 80, "\2" * 80, "😀"]),
    min_size=1,
    unique=True,
    max_size=6,
).map(tuple)
TOP_K = st.none() | st.integers(1, 3) | st.integers(1, 30)
OPTIONS = (
    st.builds(FillMaskParameters, top_k=TOP_K, on_long_text=st.sampled_from(["error", "window"]))
    | st.builds(FillMaskParameters, top_k=TOP_K, targets=TARGETS)
    | st.builds(FillMaskParameters, top_k=TOP_K, granularity=st.just("word"))
    | st.builds(FillMaskParameters, top_k=TOP_K, strategy=st.just("joint"))
)


def run(batch: Batch) -> BatchOutputs:
    """Return log-probabilities and logits with as many digits as possible."""
    masks, top_k = len(batch.mask_slots), int(batch.top_k[0])
    ordinary = np.arange(len(SPECIAL), len(VOCABULARY))
    ids = np.stack([np.roll(ordinary, mask)[:top_k] for mask in range(masks)] or [ordinary[:0]])
    rng = np.random.default_rng(batch.tokens)
    top = -np.sort(rng.exponential(50, ids.shape), axis=1).astype(np.float32)
    targets = -rng.exponential(50, batch.target_ids.shape).astype(np.float32)
    logits = rng.normal(size=(len(batch.pooled_lengths), 4)).astype(np.float32)
    return BatchOutputs(ids, top, targets, logits)


class Service:
    """Pipelines of the tiny model with an event loop of their own."""

    def __init__(self, tiny: Tiny) -> None:
        self._loop = asyncio.new_event_loop()
        self.tiny = tiny
        self.tokenizer = make_tokenizer(tiny)
        self.batcher = self.wait(self._start())

    async def _start(self) -> Batcher:
        return Batcher(run, 1, 256, 10**6, 10**6, 100, pytest.fail)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(coroutine)

    def close(self) -> None:
        self.wait(self.batcher.close())
        self._loop.close()


@pytest.fixture(scope="module")
def service(tiny: Tiny) -> Iterator[Service]:
    """Pipelines whose model returns long numbers."""
    service = Service(tiny)
    yield service
    service.close()


def error_bytes(texts: Iterable[object]) -> int:
    """Return the JSON of the errors of rejected texts, which the estimate does not count."""
    return sum(len(to_json(one)) + 1 for one in texts if isinstance(one, RejectedText))


@given(texts=st.lists(TEXTS, min_size=1, max_size=4), options=OPTIONS)
def test_fills(
    service: Service,
    texts: list[str],
    options: FillMaskParameters,
) -> None:
    async def check() -> None:
        pipeline = make_pipeline(service.tiny, service.batcher)
        try:
            planned = await pipeline.plan(Inputs(texts, [options] * len(texts), report_errors=True))
        except InvalidRequestError:  # of all targets or of the work
            return
        content = FILL_MASK.response(await pipeline.run(planned), single=False)
        json_bytes = planned.size.json_bytes
        assert len(content) <= json_bytes + error_bytes(planned.rejected.values()) + 50
        assert memory_bytes(planned) >= 2 * json_bytes

    service.wait(check())


@given(texts=st.lists(UNMASKED | TEXTS, min_size=1, max_size=4))
def test_scores(service: Service, texts: list[str]) -> None:
    async def check() -> None:
        pipeline = ScoringPipeline(service.tokenizer, service.batcher, MAX_TOKENS, 1_000)
        options = [ScoreParameters()] * len(texts)
        planned = await pipeline.plan(Inputs(texts, options, report_errors=True))
        content = SCORE.response(await pipeline.run(planned), single=False)
        assert len(content) <= memory_bytes(planned) / 2 + error_bytes(planned.texts) + 50

    service.wait(check())


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=4),
    names=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=4, max_size=4),
    top_k=st.none() | st.integers(1, 9),
    function=st.sampled_from(FUNCTIONS),
)
def test_labels(
    service: Service,
    texts: list[str],
    names: list[str],
    top_k: int | None,
    function: FunctionToApply,
) -> None:
    head = Classification(
        labels=tuple(names), problem_type="single_label_classification", pooling="mean"
    )

    async def check() -> None:
        pipeline = ClassificationPipeline(service.tokenizer, service.batcher, head, MAX_TOKENS)
        options = [ClassifyParameters(top_k=top_k, function_to_apply=function)] * len(texts)
        planned = await pipeline.plan(Inputs(texts, options, report_errors=True))
        content = CLASSIFY.response(await pipeline.run(planned), single=False)
        json_bytes = planned.size.json_bytes
        assert len(content) <= json_bytes + error_bytes(planned.texts) + 50
        assert memory_bytes(planned) >= 2 * json_bytes

    service.wait(check())
