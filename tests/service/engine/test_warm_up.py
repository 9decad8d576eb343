"""Warm-up batches at the start of the service."""

import numpy as np
import pytest

from fillmask.bundles.description import Pooling
from fillmask.engine.batch_arrays import Batch
from fillmask.engine.passes import BatchOutputs
from fillmask.engine.warm_up import warm_up
from fillmask.errors import BundleError


class Recorder:
    """Runtime that records its batches and raises `error` unless it is None."""

    def __init__(self, error: Exception | None = None) -> None:
        self.batches: list[Batch] = []
        self.error = error
        self.threads = 1

    def run(self, batch: Batch) -> BatchOutputs:
        self.batches.append(batch)
        if self.error is not None:
            raise self.error
        shape = (len(batch.mask_slots), 1)
        scores = np.zeros(shape, dtype=np.float32)
        ids = np.zeros(shape, dtype=np.int64)
        return BatchOutputs(ids, scores, scores, threads=self.threads)


@pytest.mark.parametrize(
    ("max_batch_tokens", "max_masks", "texts", "masks"),
    [(256, 128, 8, 128), (100, 6, 3, 6), (16, 128, 1, 32)],
)
def test_the_first_batch_is_the_largest(
    max_batch_tokens: int, max_masks: int, texts: int, masks: int
) -> None:
    # The longest texts, each with the maximum number of masks, fill the token budget.
    recorder = Recorder()
    warm_up(recorder.run, 4, 32, max_batch_tokens, max_masks, top_k=20)
    batch = recorder.batches[0]
    assert [r.tokens for r in batch.passes] == [32] * texts
    assert len(batch.mask_slots) == masks
    assert batch.top_k.tolist() == [20]
    assert set(batch.input_ids.tolist()) == {4}


def test_threads_multiply_the_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    # The estimate of the wait needs the throughput of one thread.
    clock = iter([10.0, 10.5])
    monkeypatch.setattr("fillmask.engine.warm_up.time.perf_counter", lambda: next(clock))
    recorder = Recorder()
    recorder.threads = 3
    assert warm_up(recorder.run, 4, 32, 192, 128, top_k=5) == (192, 1.5)


@pytest.mark.parametrize(("max_tokens", "texts", "length"), [(8192, 6, 32), (20, 9, 20)])
def test_the_second_batch_measures_the_throughput(max_tokens: int, texts: int, length: int) -> None:
    # Sentences with one mask each fill the second batch.
    recorder = Recorder()
    tokens, seconds = warm_up(recorder.run, 4, max_tokens, 192, 128, top_k=20)
    longest, batch = recorder.batches
    assert max(one.tokens for one in longest.passes) <= 1024  # longer texts would delay the start
    assert [r.tokens for r in batch.passes] == [length] * texts
    assert len(batch.mask_slots) == texts
    assert tokens == texts * length
    assert 0 < seconds < 1


@pytest.mark.parametrize(("pooling", "read"), [("first", 1), ("mean", 32)])
def test_a_model_without_fills_computes_labels(pooling: Pooling, read: int) -> None:
    recorder = Recorder()
    tokens, _ = warm_up(recorder.run, 4, 32, 256, 128, top_k=1, pooling=pooling, fills=False)
    assert tokens == 256
    assert len(recorder.batches) == 2
    for batch in recorder.batches:
        assert len(batch.mask_slots) == 0
        assert batch.pooled_lengths.tolist() == [read] * 8


def test_a_model_with_both_heads_computes_both() -> None:
    # Every second text has masks, and the other texts have labels.
    recorder = Recorder()
    warm_up(recorder.run, 4, 32, 256, 128, top_k=5, pooling="first")
    for batch, masks in zip(recorder.batches, (16, 1), strict=True):
        assert [len(one.mask_positions) for one in batch.passes] == [masks, 0] * 4
        assert batch.pooled_lengths.tolist() == [1] * 4


@pytest.mark.parametrize(("fills", "masks"), [(True, 4), (False, 0)])
def test_a_failing_model_is_rejected(masks: int, *, fills: bool) -> None:
    recorder = Recorder(RuntimeError("out of memory"))
    sizes = rf"test batch \(texts: 2, tokens per text: 32, masks per text: {masks}\)"
    with pytest.raises(BundleError, match=sizes):
        warm_up(recorder.run, 4, 32, 64, 8, top_k=5, pooling="first", fills=fills)
