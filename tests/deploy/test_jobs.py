"""Examples of Indexed Jobs: for a whole file, and for training in several pods."""

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from fillmask.cli import signals
from fillmask.cli.errors import CommandError, RetryError
from fillmask_model.commands import _parser
from tests.deploy import files, kustomize
from tests.service.cli.command_line import fillmask, numbered, random_texts, write_rows
from tests.service.tiny import write_bundle

pytestmark = pytest.mark.processes

PRETRAINING = files.K8S / "examples" / "pretraining"


def job_of(name: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the specs of an example's Job, of its pods and of their container."""
    job = files.read_yaml(files.K8S / "examples" / name / "job.yaml")["spec"]
    assert job["completionMode"] == "Indexed"
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    return job, pod, container


def test_outputs_of_the_pods_in_order_are_the_whole(tmp_path: Path) -> None:
    # The pods' command runs with a local directory as the volume.
    job, _, container = job_of("whole-file")
    tiny = write_bundle(tmp_path / "tiny")
    assert find_spec(f"{container['command'][-1]}.__main__")
    write_rows(tmp_path / "texts.jsonl", numbered(random_texts(12)))
    parts = []
    for index in range(job["completions"]):
        words = [word.replace("$(JOB_COMPLETION_INDEX)", str(index)) for word in container["args"]]
        arguments = [word.replace("/data", str(tmp_path)) for word in words]
        assert fillmask(*arguments, "--bundle", tiny.path).code == 0
        parts.append((tmp_path / f"fills-{index}.jsonl").read_bytes())
    flags = ("--bundle", tiny.path, "--output", tmp_path / "whole.jsonl")
    assert fillmask("--input", tmp_path / "texts.jsonl", *flags).code == 0
    assert b"".join(parts) == (tmp_path / "whole.jsonl").read_bytes()


def test_permanent_failures_are_not_retried_and_others_leave_time_to_write() -> None:
    # A Job retries after temporary failures and after the eviction of a pod.
    job, pod, container = job_of("whole-file")
    fail, ignore = job["podFailurePolicy"]["rules"]
    assert (fail["action"], ignore["action"]) == ("FailIndex", "Ignore")
    assert fail["onExitCodes"]["containerName"] == container["name"]
    assert CommandError.exit_code in fail["onExitCodes"]["values"]
    assert RetryError.exit_code not in fail["onExitCodes"]["values"]
    assert pod["restartPolicy"] == "Never"  # a podFailurePolicy requires it
    assert pod["terminationGracePeriodSeconds"] > signals.GRACE_S


JOB, POD, CONTAINER = job_of("pretraining")
(STEPS,) = (each["value"] for each in CONTAINER["env"] if each["name"] == "STEPS")


def write_run(volume: Path, script: str, step: str) -> None:
    """Write a program in place of python, and the log of a run with this last step."""
    python = volume / "bin" / "python"
    for folder in (python.parent, volume / "run", volume / "texts"):
        folder.mkdir(exist_ok=True)
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    lines = [json.dumps({"step": each, "loss": 2.0}) for each in (10, int(step))]
    (volume / "run" / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def start(index: int, volume: Path, name: str = "job") -> subprocess.Popen[str]:
    """Start the command of the pod of an index."""
    words = [*CONTAINER["command"], *CONTAINER["args"]]
    path = f"{volume / 'bin'}:{os.environ['PATH']}"
    variables = {"JOB_COMPLETION_INDEX": str(index), "JOB_NAME": name, "STEPS": STEPS}
    return subprocess.Popen(
        [word.replace("/data", str(volume)) for word in words],
        env={"PATH": path, **variables},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_each_pod_is_a_node_of_one_run_and_finds_the_first(tmp_path: Path) -> None:
    # Kubernetes names a pod after its Job and its index. The Service gives it a domain. torchrun
    # and fillmask-train accept the arguments.
    from torch.distributed.run import get_args_parser  # noqa: PLC0415 - takes a second

    service = kustomize.one(kustomize.rendered(PRETRAINING), "Service")
    assert POD["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert JOB["parallelism"] == JOB["completions"]
    write_run(tmp_path, 'printf "%s\\n" "$@"', STEPS)
    for index in range(JOB["completions"]):
        printed, _ = start(index, tmp_path, POD["subdomain"]).communicate()
        module, launcher, *arguments = printed.splitlines()
        assert [module, launcher] == ["-m", "torch.distributed.run"]
        node = get_args_parser().parse_args(arguments)
        assert node.nnodes == str(JOB["completions"])
        assert node.node_rank == index
        assert node.master_addr == f"{POD['subdomain']}-0.{POD['subdomain']}"
        assert node.master_port == service["spec"]["ports"][0]["port"]
        assert (node.module, node.training_script) == (True, "fillmask_model")
        options = _parser().parse_args(node.training_script_args)
        assert (options.resume, options.texts) == (False, [tmp_path / "texts"])
    (tmp_path / "run" / "train_state.pt").touch()
    assert start(0, tmp_path).communicate()[0].splitlines()[-1] == "--resume"


@pytest.mark.parametrize(("script", "step", "status"), [("exit 0", "130", 1), ("exit 3", STEPS, 3)])
def test_a_pod_without_the_last_step_fails(
    tmp_path: Path, script: str, step: str, status: int
) -> None:
    # Kubernetes replaces only pods that fail.
    write_run(tmp_path, script, step)
    with start(0, tmp_path) as process:
        assert process.wait() == status


def test_sigterm_goes_to_torchrun(tmp_path: Path) -> None:
    # The replacement of an evicted pod continues the run.
    trap = "trap 'echo saved; exit 0' TERM; echo begun; while :; do sleep 0.1; done"
    write_run(tmp_path, trap, STEPS)
    with start(0, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        assert process.stdout.read() == "saved\n"
    assert process.returncode == 1
