"""Example of an Indexed Job that trains in several pods."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from torch.distributed.run import get_args_parser

from fillmask_model.commands import _parser
from tests.deploy import files, kustomize, releases

pytestmark = pytest.mark.processes

DIRECTORY = files.K8S / "examples" / "pretraining"
JOB = files.read_yaml(DIRECTORY / "job.yaml")["spec"]
POD = JOB["template"]["spec"]
(CONTAINER,) = POD["containers"]


(STEPS,) = (each["value"] for each in CONTAINER["env"] if each["name"] == "STEPS")


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """Directory in place of the volume with a complete run.

    A program in place of python prints its arguments.
    """
    (tmp_path / "bin").mkdir()
    write_python(tmp_path, 'printf "%s\\n" "$@"')
    (tmp_path / "texts").mkdir()
    (tmp_path / "run").mkdir()
    log_step(tmp_path, STEPS)
    return tmp_path


def write_python(volume: Path, script: str) -> None:
    python = volume / "bin" / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)


def log_step(volume: Path, step: str) -> None:
    """Write a log of a run with this last step."""
    lines = [json.dumps({"step": each, "loss": 2.0}) for each in (10, int(step))]
    (volume / "run" / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def start(index: int, volume: Path, job_name: str = "job") -> subprocess.Popen[str]:
    """Start the command of the pod of an index."""
    words = [*CONTAINER["command"], *CONTAINER["args"]]
    return subprocess.Popen(
        [word.replace("/data", str(volume)) for word in words],
        env={
            "PATH": f"{volume / 'bin'}:{os.environ['PATH']}",
            "JOB_COMPLETION_INDEX": str(index),
            "JOB_NAME": job_name,
            "STEPS": STEPS,
        },
        stdout=subprocess.PIPE,
        text=True,
    )


def arguments_of(index: int, volume: Path, job_name: str = "job") -> list[str]:
    """Return the arguments with which the pod of an index starts python."""
    process = start(index, volume, job_name)
    printed, _ = process.communicate()
    assert process.returncode == 0
    return printed.splitlines()


def test_each_pod_is_a_node_of_one_run(volume: Path) -> None:
    # torchrun and fillmask-train accept the arguments.
    port = files.read_yaml(DIRECTORY / "service.yaml")["spec"]["ports"][0]["port"]
    assert JOB["completionMode"] == "Indexed"
    assert JOB["parallelism"] == JOB["completions"]
    for index in range(JOB["completions"]):
        module, launcher, *arguments = arguments_of(index, volume)
        assert [module, launcher] == ["-m", "torch.distributed.run"]
        node = get_args_parser().parse_args(arguments)
        assert node.nnodes == str(JOB["completions"])
        assert node.node_rank == index
        assert node.master_port == port
        assert node.module
        assert node.training_script == "fillmask_model"
        options = _parser().parse_args(node.training_script_args)
        assert not options.resume
        assert options.texts == [volume / "texts"]


@pytest.mark.parametrize("suffix", ["", "-french"])
def test_every_pod_finds_the_first_pod(volume: Path, suffix: str) -> None:
    # Kubernetes names a pod after its Job and its index. The Service gives it a domain.
    objects = releases.of_production().second if suffix else kustomize.rendered(DIRECTORY)
    label = "app.kubernetes.io/name"
    own = [o for o in objects if o["metadata"]["labels"].get(label) == "fillmask-pretraining"]
    job, service = (kustomize.one(own, kind) for kind in ("Job", "Service"))
    name = job["metadata"]["name"]
    pod = job["spec"]["template"]["spec"]
    assert name == f"fillmask-pretraining{suffix}"
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    # The Job's controller adds this label to its pods.
    (variable,) = (each for each in pod["containers"][0]["env"] if each["name"] == "JOB_NAME")
    field = variable["valueFrom"]["fieldRef"]["fieldPath"]
    assert field == "metadata.labels['batch.kubernetes.io/job-name']"
    for index in range(JOB["completions"]):
        _, _, *arguments = arguments_of(index, volume, name)
        node = get_args_parser().parse_args(arguments)
        assert node.master_addr == f"{name}-0.{pod['subdomain']}"


def test_a_restarted_pod_resumes(volume: Path) -> None:
    (volume / "run" / "train_state.pt").touch()
    assert arguments_of(0, volume)[-1] == "--resume"


@pytest.mark.parametrize(
    ("script", "last_step", "status"), [("exit 0", "130", 1), ("exit 3", STEPS, 3)]
)
def test_a_pod_without_the_last_step_fails(
    volume: Path, script: str, last_step: str, status: int
) -> None:
    # Kubernetes replaces only pods that fail.
    write_python(volume, script)
    log_step(volume, last_step)
    with start(0, volume) as process:
        assert process.wait() == status


def test_sigterm_goes_to_torchrun(volume: Path) -> None:
    # The replacement of an evicted pod continues the run.
    write_python(volume, "trap 'echo saved; exit 0' TERM; echo begun; while :; do sleep 0.1; done")
    with start(0, volume) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        assert process.stdout.read() == "saved\n"
    assert process.returncode == 1


def test_pods_connect_only_to_each_other_and_to_dns() -> None:
    objects = kustomize.rendered(DIRECTORY)
    policy = kustomize.one(objects, "NetworkPolicy")["spec"]
    (labels,) = kustomize.templates(objects)
    pods = policy["podSelector"]
    assert pods["matchLabels"].items() <= labels.items()
    assert policy["ingress"] == [{"from": [{"podSelector": pods}]}]
    to_pods, dns = policy["egress"]
    assert to_pods == {"to": [{"podSelector": pods}]}
    assert {port["port"] for port in dns["ports"]} == {53}
