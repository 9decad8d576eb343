"""The example of an Indexed Job: restricted, and its shards are all of the file."""

from pathlib import Path
from typing import Any

import pytest

from service import __version__
from service.cli import signals
from service.cli.arguments import read_arguments
from service.cli.errors import CommandError, RetryError
from service.cli.row_options import FileTask, Shard
from tests.deploy import files
from tests.service.cli.command_line import fillmask, numbered, random_texts, write_rows
from tests.service.tiny import Tiny, write_bundle

DIRECTORY = files.K8S / "examples" / "whole-file"
JOB = files.read_yaml(DIRECTORY / "job.yaml")["spec"]
POD = JOB["template"]["spec"]
(CONTAINER,) = POD["containers"]
KUSTOMIZATION = files.read_yaml(DIRECTORY / "kustomization.yaml")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A model."""
    return write_bundle(tmp_path_factory.mktemp("bundles") / "tiny")


def arguments_of(index: int) -> list[str]:
    """What the pod of an index is told, its variable put in as Kubernetes does."""
    variable = "$(JOB_COMPLETION_INDEX)"
    return [argument.replace(variable, str(index)) for argument in CONTAINER["args"]]


def test_the_command_is_the_images() -> None:
    """Without a shell, from where the image's own entrypoint starts."""
    assert CONTAINER["command"] == ["python", "-m", "service.cli"]
    assert files.values(files.stages(files.DOCKERFILE.read_text())[-1], "ENTRYPOINT") == [
        '["python", "-m", "service"]'
    ]


def test_each_pod_takes_a_shard_of_its_own() -> None:
    """The real parser takes the arguments; all shards together are the file, in outputs apart."""
    tasks = [read_arguments(arguments_of(index)).task for index in range(JOB["completions"])]
    shards, outputs = [], set()
    for task in tasks:
        assert isinstance(task, FileTask)
        shards.append(task.filling.shard)
        outputs.add(task.output)
    assert shards == [Shard(index, JOB["completions"]) for index in range(JOB["completions"])]
    assert len(outputs) == JOB["completions"]
    assert JOB["completionMode"] == "Indexed"
    assert 1 <= JOB["parallelism"] <= JOB["completions"]


def test_the_pods_outputs_in_order_are_the_whole(tiny: Tiny, tmp_path: Path) -> None:
    """Their arguments are run, with a directory of this machine as the volume."""
    write_rows(tmp_path / "texts.jsonl", numbered(random_texts(50)))
    parts = []
    for index in range(JOB["completions"]):
        arguments = [word.replace("/data", str(tmp_path)) for word in arguments_of(index)]
        assert fillmask(*arguments, "--bundle", tiny.path).code == 0
        parts.append((tmp_path / f"fills-{index}.jsonl").read_bytes())
    flags = ("--bundle", tiny.path, "--output", tmp_path / "whole.jsonl")
    assert fillmask("--input", tmp_path / "texts.jsonl", *flags).code == 0
    assert b"".join(parts) == (tmp_path / "whole.jsonl").read_bytes()


def test_what_would_fail_again_is_not_tried_again() -> None:
    """The exit code of such errors alone; others, and drained nodes, are."""
    fail, ignore = JOB["podFailurePolicy"]["rules"]
    assert fail["action"] == "FailIndex"
    assert fail["onExitCodes"]["containerName"] == CONTAINER["name"]
    assert fail["onExitCodes"]["values"] == [CommandError.exit_code]
    assert RetryError.exit_code not in fail["onExitCodes"]["values"]
    assert ignore["action"] == "Ignore"
    assert [condition["type"] for condition in ignore["onPodConditions"]] == ["DisruptionTarget"]
    assert POD["restartPolicy"] == "Never"  # which a policy for failures demands
    assert JOB["backoffLimitPerIndex"] > 0
    assert JOB["ttlSecondsAfterFinished"] > 0


def test_the_volume_is_mounted_where_the_files_are() -> None:
    """And it is the claim that is made beside the Job."""
    claim = files.read_yaml(DIRECTORY / "volume.yaml")
    (volume,), (mount,) = POD["volumes"], CONTAINER["volumeMounts"]
    assert volume["persistentVolumeClaim"] == {"claimName": claim["metadata"]["name"]}
    assert volume["name"] == mount["name"]
    for argument in arguments_of(0)[:2]:
        assert argument.partition("=")[2].startswith(f"{mount['mountPath']}/")
    # the volume is writable to the group that the pod has
    assert POD["securityContext"]["fsGroup"] == POD["securityContext"]["runAsGroup"]


def test_pod_satisfies_the_restricted_standard() -> None:
    """Pod Security's strictest profile admits the pod, which runs as the image's user."""
    context: dict[str, Any] = POD["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (context["runAsUser"], context["runAsGroup"]) == files.image_user()
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & POD.keys()
    assert POD["automountServiceAccountToken"] is False
    assert POD["enableServiceLinks"] is False
    assert CONTAINER["resources"]["requests"].keys() == {"cpu", "memory"}
    assert CONTAINER["resources"]["limits"].keys() == {"cpu", "memory"}


def test_pod_may_keep_what_is_done() -> None:
    """The kubelet waits longer than the command takes to stop."""
    assert POD["terminationGracePeriodSeconds"] > signals.GRACE_S


def test_no_request_is_sent_to_the_pods() -> None:
    """The Service does not select them."""
    (labels,) = KUSTOMIZATION["labels"]
    selector = files.read_yaml(files.BASE / "service.yaml")["spec"]["selector"]
    assert not selector.items() <= labels["pairs"].items()
    (field,) = labels["fields"]
    assert field["path"] == "spec/template/metadata/labels"


def test_kustomization_takes_every_manifest_and_names_the_version() -> None:
    """As the base's does."""
    here = {path.name for path in DIRECTORY.iterdir()} - {"kustomization.yaml"}
    assert set(KUSTOMIZATION["resources"]) == here
    assert KUSTOMIZATION["images"] == [{"name": CONTAINER["image"], "newTag": __version__}]
    (labels,) = KUSTOMIZATION["labels"]
    assert labels["pairs"]["app.kubernetes.io/version"] == __version__


def test_the_page_says_how_it_is_applied() -> None:
    """By the directory that is here, to the Job and the claim that are."""
    page = (files.ROOT / "docs" / "whole-files.md").read_text(encoding="utf-8")
    assert f"kubectl apply -k {DIRECTORY.relative_to(files.ROOT)}" in page
    assert f"job/{files.read_yaml(DIRECTORY / 'job.yaml')['metadata']['name']}" in page
    assert f"`{files.read_yaml(DIRECTORY / 'volume.yaml')['metadata']['name']}`" in page
