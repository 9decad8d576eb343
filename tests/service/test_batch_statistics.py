"""What is counted of batches."""

import threading

from service.batch_statistics import BatchStatistics


def test_a_batch_is_counted() -> None:
    """Its sequences each with their wait, the rest once."""
    statistics = BatchStatistics()
    statistics.note_batch(tokens=30, slots=48, queue_s=[0.001, 0.002, 0.003], compute_s=0.01)
    statistics.note_batch(tokens=5, slots=16, queue_s=[0.5], compute_s=0.02)
    assert statistics.queue_seconds.cumulative[-1][1] == 4
    assert statistics.queue_seconds.total == 0.001 + 0.002 + 0.003 + 0.5
    assert statistics.compute_seconds.cumulative[-1][1] == 2
    assert statistics.tokens.total == 35
    assert statistics.sequences.total == 4
    assert statistics.slots == 64


def test_nothing_is_lost_between_threads() -> None:
    """An old and a new batcher of a model tell the same one."""
    statistics = BatchStatistics()

    def tell() -> None:
        for _ in range(2000):
            statistics.note_batch(1, 16, [0.1], 0.1)
            statistics.note_failure()
            statistics.note_refusal("queue_full")

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statistics.slots == 4 * 2000 * 16
    assert statistics.failures == statistics.refusals["queue_full"] == 8000
    assert statistics.queue_seconds.cumulative[-1][1] == 8000
