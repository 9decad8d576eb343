"""Interrupted runs and their exact continuation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fillmask_model.checkpoints.checkpoint import load_checkpoint
from fillmask_model.pretraining.loop import Pretraining
from fillmask_model.pretraining.state import read_state
from tests.model.samples import assert_same_weights, metrics_of


def interrupt_at(run: Pretraining, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupt a run in the middle of a step."""
    clip = torch.nn.utils.clip_grad_norm_

    def dying(*arguments: Any) -> Any:
        if run.step + 1 == step:
            raise KeyboardInterrupt
        return clip(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.utils, "clip_grad_norm_", dying)
        with pytest.raises(KeyboardInterrupt):
            run.run()


@pytest.mark.slow
@pytest.mark.parametrize("accumulate_passes", [1, 3])
def test_an_interrupted_run_resumes_bit_exact(
    pretraining: Any, no_curve: None, monkeypatch: pytest.MonkeyPatch, accumulate_passes: int
) -> None:
    # The log is the same as without the interruption.
    # 20 steps of 8 or 24 rows are several epochs of 56 rows. The interruption in step 17 leaves log
    # lines after the checkpoint of step 10. The resumed run repeats the steps of these lines.
    changes = {"steps": 20, "checkpoint_every_steps": 10, "accumulate_passes": accumulate_passes}
    whole = pretraining(name="whole", **changes)
    whole.run()
    killed = pretraining(name="killed", **changes)
    interrupt_at(killed, 17, monkeypatch)
    assert metrics_of(killed.directory)[-1]["step"] == 15
    resumed = pretraining(name="killed", weights_seed=9, **changes)
    resumed.resume()
    assert resumed.step == 10
    resumed.run()
    assert_same_weights(resumed.model, whole.model)
    assert_same_weights(load_checkpoint(resumed.directory).model, whole.model)
    logs = [(run.directory / "metrics.jsonl").read_bytes() for run in (whole, resumed)]
    assert logs[0] == logs[1]


@pytest.mark.slow
def test_a_longer_run_is_the_run_that_was_planned_so(pretraining: Any, no_curve: None) -> None:
    # Runs of 15 and of 25 steps are the same before the decay.
    whole = pretraining(name="whole", steps=25, decay_steps=5)
    whole.run()
    pretraining(name="longer", steps=15, decay_steps=5).run(until_step=10)
    longer = pretraining(name="longer", steps=25, decay_steps=5, weights_seed=9)
    longer.resume()
    longer.run()
    assert_same_weights(longer.model, whole.model)


def test_states_of_earlier_versions_have_other_fields(pretraining: Any, no_curve: None) -> None:
    # A missing field has its default. A field that is gone changed nothing if it was 0.
    pretraining().run(until_step=2)
    path = pretraining().directory / "train_state.pt"
    state = torch.load(path, weights_only=True)
    assert state["config"].pop("next_sentence") is False
    state["config"] |= {"average_decay": 0.0, "frequent_tokens": 4096}
    torch.save(state, path)
    resumed = pretraining()
    resumed.resume()
    assert resumed.step == 2
    with pytest.raises(ValueError, match=r"next_sentence must be False \(got True\)"):
        read_state(resumed.directory, replace(resumed.config, next_sentence=True))
    state["config"]["average_decay"] = 0.5
    torch.save(state, path)
    with pytest.raises(ValueError, match=r"average_decay must be 0\.5 \(got None\)"):
        pretraining().resume()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 7}, r"steps must be at least 8.*\(got 7\)"),
        (
            {"select_rate": 0.2, "warmup_steps": 6},
            r"configuration: select_rate must be 0\.3 \(got 0\.2\), .*; change only checkpoint_ev",
        ),
    ],
)
def test_the_error_names_what_differs(
    pretraining: Any, no_curve: None, changes: dict[str, Any], message: str
) -> None:
    # The message lists the old values, the new values and the fields that may change.
    pretraining(steps=10).run(until_step=8)
    with pytest.raises(ValueError, match=message):
        pretraining(**({"steps": 10} | changes)).resume()
