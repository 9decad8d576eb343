"""Recipe of the built-in model: the commands of `make train-default`."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import pytest

from fillmask_model.pretraining.commands import add_commands
from fillmask_model.pretraining.config import TrainConfig
from fillmask_model.pretraining.mix_command import add_commands as add_data_commands
from tests.model.recipes import recipe_commands


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[argparse.Namespace]:
    """The parsed commands, with an empty directory for the run."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    add_commands(commands)
    add_data_commands(commands)
    run = tmp_path_factory.mktemp("run")
    return [parser.parse_args(command) for command in recipe_commands(f"RUN={run}")]


def phases(steps: list[argparse.Namespace]) -> list[argparse.Namespace]:
    return [step for step in steps if hasattr(step, "init")]


def test_each_phase_starts_from_the_previous_one(steps: list[argparse.Namespace]) -> None:
    first, *others = phases(steps)

    assert (first.init / "config.json").is_file()
    assert [phase.init for phase in others] == [phase.output for phase in phases(steps)[:-1]]


def test_each_phase_reads_a_mixture_that_an_earlier_command_writes(
    steps: list[argparse.Namespace],
) -> None:
    written = {step.output for step in steps if hasattr(step, "mixture")}

    assert {text for phase in phases(steps) for text in phase.texts} == written


def test_the_options_of_each_phase_are_valid(steps: list[argparse.Namespace]) -> None:
    names = [field.name for field in dataclasses.fields(TrainConfig)]
    configs = [TrainConfig(**{n: getattr(phase, n) for n in names}) for phase in phases(steps)]

    assert len(configs) == 10
    assert not any(phase.resume for phase in phases(steps))


@pytest.mark.slow
def test_the_mixture_has_the_additional_text_without_the_probes(
    steps: list[argparse.Namespace], tmp_path: Path
) -> None:
    command = [step for step in steps if hasattr(step, "mixture")][-1]
    command.texts, command.titles = command.texts[-1:], command.titles[-1:]
    command.leave_out, command.output = command.leave_out[:-1], tmp_path / "mixed.txt"

    command.command(command)

    text = set(command.output.read_text(encoding="utf-8").splitlines())
    assert "Storks have mouths." in text
    assert "The opposite of dry is wet." in text
    assert "The opposite of wet is dry." not in text  # a sentence of the plain facts


@pytest.mark.slow
def test_a_stopped_phase_continues(tmp_path: Path) -> None:
    (tmp_path / "phase_3").mkdir()
    (tmp_path / "phase_3" / "train_state.pt").touch()

    resumed = [command for command in recipe_commands(f"RUN={tmp_path}") if "--resume" in command]

    assert [command[command.index("--output") + 1] for command in resumed] == [
        f"{tmp_path}/phase_3"
    ]
