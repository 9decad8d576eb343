from __future__ import annotations

import subprocess
import threading
from collections import Counter

import numpy as np
import pytest

from benchmarks.comparison.in_process import comparison
from benchmarks.comparison.in_process.comparison import InProcessComparison
from benchmarks.comparison.in_process.throughput import (
    CTRANSLATE2,
    Setting,
    by_tokens,
    drive,
    variants,
)
from benchmarks.comparison.results import SizeResults
from fillmask.tokenization.encoded_text import EncodedText


def _text(tokens: int) -> EncodedText:
    return EncodedText(np.arange(tokens), np.array([0]), ((0, 1),))


@pytest.mark.parametrize(
    ("lengths", "batches"),
    [
        ([10, 10, 10], [[10, 10], [10]]),
        ([25, 3], [[25], [3]]),
        ([5, 25, 5], [[5], [25], [5]]),
        ([20], [[20]]),
        ([], []),
    ],
)
def test_batches_keep_the_order_and_the_budget(
    lengths: list[int], batches: list[list[int]]
) -> None:
    # A text above the token budget is a batch of its own.
    formed = by_tokens([_text(length) for length in lengths], 20)
    assert [[len(text.input_ids) for text in batch] for batch in formed] == batches


def test_every_thread_warms_up_on_every_job() -> None:
    # Each thread runs each job before the clock starts. Afterwards the threads share the jobs.
    done: Counter[tuple[int, str]] = Counter()
    jobs = [(1, lambda name=name: done.update([(threading.get_ident(), name)])) for name in "abc"]
    assert drive(jobs, threads=2, seconds=0.01) > 0
    assert len(done) == 2 * 3


def test_variants_run_one_text_and_eight_and_ours_by_tokens() -> None:
    # OpenVINO runs the int8 graph with fp32 and with bf16 for all operations that are not int8.
    table = variants()
    assert table["fillmask int8"] == [Setting(0)]
    assert table["onnxruntime, gather graph"] == [Setting(1), Setting(8)]
    assert table["OpenVINO int8, gather graph"] == [
        *(Setting(1, "f32"), Setting(1, "bf16"), Setting(8, "f32"), Setting(8, "bf16")),
    ]
    assert Setting(8, "bf16").label == "8 texts per run, bf16"
    similar = Setting(8, "NumPy", by_length=True)
    assert similar in table[CTRANSLATE2]
    assert similar.label == "8 texts of similar length per run, NumPy"


def test_a_measurement_that_hangs_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    def hang_once(*_: object) -> float:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise subprocess.TimeoutExpired("a variant", 180)
        return 1.0

    monkeypatch.setattr(comparison, "measure", hang_once)
    results = SizeResults(parameters="", texts=0, mean_tokens=0, mean_masks=0)
    compared = InProcessComparison("minilm", (0,), 1, results)
    compared.choose_settings()
    compared.round()
    assert results.in_process == {name: [1.0] for name in variants()}
