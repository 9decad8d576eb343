"""Formula for the number of pods, compared with a simulation of the service."""

import statistics

import pytest

from benchmarks.load import capacity
from benchmarks.load.capacity import Arrival, Pod, pods_needed, simulate
from fillmask.settings import Settings

POD_TOKENS_PER_S = 17_000.0
RATE = 5_000
SECONDS = 15.0


def pod(**limits: int) -> Pod:
    return Pod(POD_TOKENS_PER_S, 2, Settings().model_copy(update=limits))


def test_formula_is_work_over_what_a_pod_should_do() -> None:
    # Ten pods at 70 % of 1,000 tokens/s compute 7,000 tokens/s. More load needs another pod.
    assert pods_needed(70, 100, 1000) == 10
    assert pods_needed(70.1, 100, 1000) == 11
    assert pods_needed(0.1, 1, 1000) == 1


@pytest.mark.parametrize("rate", [300, RATE])
def test_formulas_number_refuses_nobody(rate: int) -> None:
    # The service rejects no request even without the additional pod.
    tokens = statistics.mean(capacity.text_tokens())
    pods = pods_needed(rate, tokens, POD_TOKENS_PER_S)
    outcome = simulate(rate, pods, POD_TOKENS_PER_S, SECONDS)
    assert outcome.refused == 0
    assert len(outcome.latencies_s) > 0.9 * rate * SECONDS


def test_a_third_less_refuses() -> None:
    # The formula's number of pods is not larger than necessary.
    tokens = statistics.mean(capacity.text_tokens())
    pods = pods_needed(RATE, tokens, POD_TOKENS_PER_S) * 2 // 3
    outcome = simulate(RATE, pods, POD_TOKENS_PER_S, SECONDS)
    assert outcome.refused_share > 0.001


def test_one_request_takes_what_its_batch_takes() -> None:
    outcome = pod().serve([Arrival(1.0, 24)])
    assert outcome.latencies_s == [pytest.approx(pod().batch_s(24))]


def test_full_batches_give_the_measured_speed() -> None:
    # Two workers with full batches reach the measured tokens per second of a pod.
    full = Settings().max_batch_tokens
    assert 2 * full / pod().batch_s(full) == pytest.approx(POD_TOKENS_PER_S)


def test_second_worker_takes_the_second_request() -> None:
    three = [Arrival(0.0, 100), Arrival(0.0, 100), Arrival(0.0, 100)]
    took_s = pod().batch_s(100)
    expected = [took_s, took_s, 2 * took_s]
    assert pod().serve(three).latencies_s == [pytest.approx(each) for each in expected]


def test_no_more_wait_than_are_admitted() -> None:
    first = [Arrival(0.0, 100)]  # the pod measures its speed with this batch
    crowd = first + [Arrival(1.0, 100)] * 10
    assert pod(max_waiting_tokens=500).serve(crowd).refused == 5
    # at this speed the pod computes 157 tokens in 10 ms
    assert pod(max_wait_ms=10).serve(crowd).refused == 8
    assert pod().serve(crowd).refused == 0


def test_all_requests_are_answered_or_refused() -> None:
    crowd = [Arrival(0.0001 * number, 26) for number in range(5000)]
    outcome = pod(max_wait_ms=100).serve(crowd)
    assert outcome.refused > 0
    assert outcome.refused + len(outcome.latencies_s) == len(crowd)
    # An accepted request takes at most the allowed wait and the time of its own batch.
    assert max(outcome.latencies_s) < 0.1 + 2 * pod().batch_s(192)
