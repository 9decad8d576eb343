"""Steps of a lease on one machine and on another."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer

from fillmask_model.training.lease.folders import Folder
from fillmask_model.training.lease.session import Session, StepOptions
from fillmask_model.training.lease.weights import OutputLimits, read_weights
from tests.model.samples import assert_same_weights, metrics_of
from tests.model.training.lease.samples import write_tiny_pack

STEP_S = 1.0  # on the clock of the tests


@pytest.fixture(scope="module")
def pack(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Start and loads of a tiny pack."""
    folder = tmp_path_factory.mktemp("lease") / "text"
    return write_tiny_pack(folder, tokenizer, load_bytes=36_500)


class StepClock:
    """Clock that only optimizer steps move on."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.begin = 0

    def __call__(self) -> float:
        return STEP_S * (self.session.progress.step - self.begin) if self.session else 0.0


def session(pack: Path, tmp_path: Path, *, name: str = "", **options: Any) -> Session:
    """Return a step on a machine and an output with a name, that starts now."""
    clock = StepClock()
    fields: dict[str, Any] = {"seconds": 20.0, "margin_s": 0.0, "device": "cpu"}
    paths = {"work": tmp_path / f"work{name}", "output": tmp_path / f"output{name}"}
    made = Session(StepOptions(**(fields | paths | options)), lambda _: None, clock)
    clock.session, clock.begin = made, made.progress.step
    return made


def first(pack: Path, tmp_path: Path, **options: Any) -> Session:
    fields: dict[str, Any] = {"loads": [pack / "load_1"], "weights": pack / "start"}
    return session(pack, tmp_path, **(fields | options))


def logged(directory: Path, field: str) -> list[float]:
    return [line[field] for line in metrics_of(directory) if field in line]


def test_two_steps_on_a_machine_are_as_one(pack: Path, tmp_path: Path) -> None:
    # Bit for bit in weights and log, although the second step reads everything from the disk.
    whole = first(pack, tmp_path, name="whole", seconds=23.0)
    whole.run()
    assert whole.progress.step == 20
    half = first(pack, tmp_path, name="half", seconds=11.0, seconds_after=12.0)
    half.run()
    assert half.progress.step == 8
    rest = session(pack, tmp_path, name="half", seconds=15.0)
    assert rest.progress.step == 8
    rest.run()
    assert rest.progress == whole.progress
    assert_same_weights(rest.step.model, whole.step.model)
    assert_same_weights(rest.step.average.model, whole.step.average.model)
    logs = [metrics_of(tmp_path / f"output{name}") for name in ("whole", "half")]
    trained = [[line | {"tokens_per_s": 0} for line in log if "loss" in line] for log in logs]
    assert trained[0] == trained[1]
    assert len(trained[0]) == 10


def test_the_rate_rises_and_ends_at_zero(pack: Path, tmp_path: Path) -> None:
    run = first(pack, tmp_path, seconds=43.0)
    run.run()
    rates = logged(tmp_path / "output", "learning_rate")
    assert rates[0] == pytest.approx(1e-2 * 2 / 4)
    assert max(rates) == pytest.approx(1e-2)
    assert rates[-1] == pytest.approx(1e-2 * 5 / 43 / 0.5)


def test_a_step_learns_and_returns_averaged_weights(pack: Path, tmp_path: Path) -> None:
    run = first(pack, tmp_path, seconds=103.0)
    run.run()
    losses = logged(tmp_path / "output", "loss")
    assert losses[-1] < 0.7 * losses[0]
    top_1 = logged(tmp_path / "output", "held_out_short_top_1")
    assert len(top_1) == 2
    assert top_1[1] > top_1[0]
    model, fields, progress = read_weights(Folder.open(tmp_path / "output", "weights"))
    assert fields == run.fields
    assert progress == run.progress
    for name, tensor in run.step.average.model.state_dict().items():
        step = tensor.abs().max() / 32_767
        assert (model.state_dict()[name] - tensor).abs().max() <= step, name


def test_a_second_load_joins_the_first(pack: Path, tmp_path: Path) -> None:
    # The new rows begin an epoch at the step with which they arrive.
    run = first(pack, tmp_path, seconds=9.0)
    rows = len(run.step._rows.groups[0].ids)
    run.run()
    more = session(pack, tmp_path, loads=[pack / "load_2"])
    assert more.progress.loads == ("load_1", "load_2")
    assert more.progress.rows_from == more.progress.step == 6
    assert len(more.step._rows.groups[0].ids) > rows
    more.run()


def test_another_machine_goes_on_from_returned_weights(pack: Path, tmp_path: Path) -> None:
    # The optimizer begins again, so the rate rises again, but the plan goes on.
    first(pack, tmp_path, name="lost", seconds=23.0, seconds_after=100.0).run()
    returned = tmp_path / "outputlost"
    run = first(pack, tmp_path, name="new", weights=returned, seconds=23.0)
    assert run.progress.step == 20
    assert run.progress.warm_from == 20
    assert run.progress.seconds == 20.0
    assert run.step.optimizer.state_dict()["state"] == {}
    model, _, _ = read_weights(Folder.open(returned, "weights"))
    assert_same_weights(run.step.model, model)
    run.run()
    rates = logged(tmp_path / "outputnew", "learning_rate")
    assert rates[0] == pytest.approx(1e-2)  # after two steps
    assert rates[-1] < 0.4e-2


@pytest.mark.parametrize("steps", [0, 12])
def test_the_newest_of_state_and_weights_counts(pack: Path, tmp_path: Path, steps: int) -> None:
    first(pack, tmp_path, name="other", seconds=9.0).run()
    if steps:
        first(pack, tmp_path, name="here", seconds=steps + 3.0).run()
    run = first(pack, tmp_path, name="here", weights=tmp_path / "outputother")
    assert run.progress.step == (steps or 6)
    assert bool(run.step.optimizer.state_dict()["state"]) == bool(steps)


def test_a_step_saves_while_it_trains(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A killed step loses at most what came after the last save.
    monkeypatch.setattr("fillmask_model.training.lease.session.SAVE_EVERY_S", 6.0)
    run = first(pack, tmp_path, seconds=60.0)
    train: Callable[..., None] = run._train_group

    def dying(total: float, now: float) -> None:
        if run.progress.step == 16:
            raise KeyboardInterrupt
        train(total, now)

    monkeypatch.setattr(run, "_train_group", dying)
    with pytest.raises(KeyboardInterrupt):
        run.run()
    _, _, progress = read_weights(Folder.open(tmp_path / "output", "weights"))
    assert progress.step == 12
    assert session(pack, tmp_path).progress.step == 12


def test_a_signal_ends_the_step_with_a_save(pack: Path, tmp_path: Path) -> None:
    run = first(pack, tmp_path, seconds=60.0)
    run.run(stop=lambda: run.progress.step >= 4)
    assert run.progress.step == 4
    assert session(pack, tmp_path).progress.step == 4


def test_a_step_without_time_returns_what_it_starts_from(pack: Path, tmp_path: Path) -> None:
    run = first(pack, tmp_path, seconds=0.0)
    run.run()
    assert run.progress.step == 0
    assert len(logged(tmp_path / "output", "held_out_top_1")) == 1
    model, _, _ = read_weights(Folder.open(tmp_path / "output", "weights"))
    for name, tensor in run.step.model.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], tensor, rtol=1e-4, atol=1e-5)


def test_a_loss_that_is_not_finite_ends_the_step(pack: Path, tmp_path: Path) -> None:
    run = first(pack, tmp_path)
    with torch.no_grad():
        run.step.model.head_bias[5] = float("nan")
    run._evaluate = run._save = lambda: None  # type: ignore[method-assign]
    with pytest.raises(FloatingPointError, match=r"got nan before step 2\); reduce learning_rate"):
        run.run()


def test_results_beyond_the_limits_are_refused_before_the_training(
    pack: Path, tmp_path: Path
) -> None:
    few = OutputLimits(part_bytes=400_000, files=4)
    with pytest.raises(ValueError, match=r"return 4 files .* of 16 bits need 5 files"):
        first(pack, tmp_path, limits=few)
    small = OutputLimits(total_bytes=1_000_000)
    with pytest.raises(ValueError, match=r"up to 1\.0 MiB; set result_bits"):
        first(pack, tmp_path, limits=small)


def test_results_keep_the_size_of_a_part(pack: Path, tmp_path: Path) -> None:
    first(pack, tmp_path, seconds=5.0, limits=OutputLimits(part_bytes=16_000, files=99)).run()
    sizes = [path.stat().st_size for path in (tmp_path / "output").glob("weights_*")]
    assert len(sizes) > 1
    assert max(sizes) == 16_000


def test_a_step_without_anything_says_what_it_needs(pack: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no load; give the first one with --load"):
        session(pack, tmp_path)
    with pytest.raises(ValueError, match=r"no state of an earlier step; give .* with --weights"):
        session(pack, tmp_path, loads=[pack / "load_1"])


def test_a_damaged_load_is_refused_and_not_kept(pack: Path, tmp_path: Path) -> None:
    copied = _copied(pack / "load_1", tmp_path / "load_1")
    (copied / "rows.0").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"rows\.0 must have the .*\(got 1 bytes"):
        first(pack, tmp_path, loads=[copied])
    assert not (tmp_path / "work" / "loads").exists()


def test_parts_of_different_packs_do_not_meet(
    pack: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    other = write_tiny_pack(tmp_path / "other", tokenizer, seed=5)
    with pytest.raises(ValueError, match="must belong to the pack of the loads"):
        first(pack, tmp_path, weights=other / "start")
    with pytest.raises(ValueError, match="has loads of 2 packs; choose another --work"):
        session(pack, tmp_path, loads=[_copied(other / "load_1", tmp_path / "load_9")])
    first(pack, tmp_path, name="state", seconds=5.0).run()
    (tmp_path / "work2").mkdir()
    (tmp_path / "workstate" / "state.pt").rename(tmp_path / "work2" / "state.pt")
    with pytest.raises(ValueError, match=r"state\.pt belongs to another pack"):
        first(other, tmp_path, name="2")


def test_a_damaged_state_is_named(pack: Path, tmp_path: Path) -> None:
    run = first(pack, tmp_path, seconds=5.0)
    run.run()
    (tmp_path / "work" / "state.pt").write_bytes(b"PK damaged")
    with pytest.raises(ValueError, match=r"state\.pt is incomplete .*; remove it and give"):
        session(pack, tmp_path)


def _copied(folder: Path, target: Path) -> Path:
    return Path(shutil.copytree(folder, target))
