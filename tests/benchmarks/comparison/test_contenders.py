"""Contenders and the commands that start them."""

from __future__ import annotations

from importlib.util import find_spec

from benchmarks.comparison.http.contenders import OURS, OURS_FP32, Contender, contenders
from benchmarks.comparison.http.installed_size import REQUIREMENTS
from benchmarks.comparison.workspace import Workspace

ALL = contenders(Workspace("minilm"), cpus=2)


def _by_name(name: str) -> Contender:
    return next(contender for contender in ALL if contender.name == name)


def test_each_starts_a_module_that_exists_in_an_environment_that_is_known() -> None:
    # A contender whose module has been renamed is missing from the table.
    assert len({contender.name for contender in ALL}) == len(ALL) == 10
    for contender in ALL:
        assert contender.command[1] == "-m"
        assert find_spec(contender.command[2]) is not None
        assert contender.environment in REQUIREMENTS


def test_fp32_must_agree_and_nothing_else_need() -> None:
    # For int8 and bf16, the page shows the share of masks on which transformers agrees.
    assert {contender.name for contender in ALL if not contender.exact} == {
        *(OURS.keys() - {OURS_FP32}),
        *("OpenVINO bf16, all logits", "OpenVINO int8, all logits", "CTranslate2 int8"),
    }


def test_threads_are_tried_both_ways_and_never_exceed_the_cpus() -> None:
    # Two CPUs compute one run with two threads, or two concurrent runs with one thread each.
    for name in ("transformers pipeline", "onnxruntime, all logits"):
        arguments = [setting.arguments for setting in _by_name(name).settings]
        assert arguments == [
            ("--runs", "1", "--threads", "2"),
            ("--runs", "2", "--threads", "1"),
        ]
        labels = [setting.label for setting in _by_name(name).settings]
        assert labels == ["1 run with 2 threads", "2 concurrent runs with 1 thread each"]
    assert [setting.arguments for setting in _by_name(OURS_FP32).settings] == [()]
