"""Example of an Indexed Job for a whole file."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from fillmask.cli import signals
from fillmask.cli.errors import CommandError, RetryError
from tests.deploy import files
from tests.service.cli.command_line import fillmask, numbered, random_texts, write_rows
from tests.service.tiny import Tiny, write_bundle

DIRECTORY = files.K8S / "examples" / "whole-file"
JOB = files.read_yaml(DIRECTORY / "job.yaml")["spec"]
POD = JOB["template"]["spec"]
(CONTAINER,) = POD["containers"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return write_bundle(tmp_path_factory.mktemp("bundles") / "tiny")


def arguments_of(index: int) -> list[str]:
    """Return the arguments of a pod, with its index substituted as Kubernetes does."""
    variable = "$(JOB_COMPLETION_INDEX)"
    return [argument.replace(variable, str(index)) for argument in CONTAINER["args"]]


def test_outputs_of_the_pods_in_order_are_the_whole(tiny: Tiny, tmp_path: Path) -> None:
    # The pods' command runs with a local directory as the volume.
    assert find_spec(f"{CONTAINER['command'][-1]}.__main__")
    assert JOB["completionMode"] == "Indexed"
    assert 1 <= JOB["parallelism"] <= JOB["completions"]
    source = write_rows(tmp_path / "texts.jsonl", numbered(random_texts(12)))
    parts = []
    for index in range(JOB["completions"]):
        arguments = [word.replace("/data", str(tmp_path)) for word in arguments_of(index)]
        assert fillmask(*arguments, "--bundle", tiny.path).code == 0
        parts.append((tmp_path / f"fills-{index}.jsonl").read_bytes())
    whole = tmp_path / "whole.jsonl"
    assert fillmask("--input", source, "--output", whole, "--bundle", tiny.path).code == 0
    assert b"".join(parts) == whole.read_bytes()


def test_permanent_failures_are_not_retried() -> None:
    # A Job retries after temporary failures and after the eviction of a pod.
    fail, ignore = JOB["podFailurePolicy"]["rules"]
    assert fail["action"] == "FailIndex"
    assert fail["onExitCodes"]["containerName"] == CONTAINER["name"]
    assert CommandError.exit_code in fail["onExitCodes"]["values"]
    assert RetryError.exit_code not in fail["onExitCodes"]["values"]
    assert ignore["action"] == "Ignore"
    assert POD["restartPolicy"] == "Never"  # a podFailurePolicy requires it


def test_pod_is_not_killed_before_it_has_written() -> None:
    assert POD["terminationGracePeriodSeconds"] > signals.GRACE_S
