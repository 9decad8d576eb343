"""Hardened services of compose.yaml, on the loopback address and with existing mounts."""

import re
from pathlib import Path
from typing import Any

import pytest

from fillmask import __version__
from tests.deploy import files
from tests.docs import pages

SERVICES: dict[str, dict[str, Any]] = files.read_yaml(files.COMPOSE)["services"]
FILLMASK = SERVICES["fillmask"]
EXPORT = SERVICES["export"]
# The export starts as root to become the owner of ./bundles.
RIGHTS_OF_THE_EXPORT = {"cap_add": ["SETGID", "SETUID"], "user": "0:0"}
RIGHTS = {"privileged", "cap_add", "devices", "network_mode", "user", "pid"}


@pytest.mark.parametrize("name", SERVICES)
def test_service_has_few_rights_and_is_reached_from_this_machine_only(name: str) -> None:
    service = SERVICES[name]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    rights = {key: service[key] for key in RIGHTS & service.keys()}
    assert rights == (RIGHTS_OF_THE_EXPORT if name == "export" else {})
    assert {"mem_limit", "pids_limit"} <= service.keys()


def test_every_image_has_a_version() -> None:
    assert FILLMASK["image"] == f"fillmask:{__version__}"
    assert EXPORT["image"] == f"fillmask-export:{__version__}"
    assert all(re.search(r":v?\d+\.\d+\.\d+$", each["image"]) for each in SERVICES.values())
    # built from the last stage and from that of the export, whose cache every user can write to
    assert FILLMASK["build"] == "."
    assert EXPORT["build"] == {"context": ".", "target": "export"}
    (stage,) = (each for each in files.STAGES if each[0].value.endswith(" AS export"))
    cache = files.assignments(stage, "ENV")["HF_HOME"]
    assert f"huggingface:{cache}" in EXPORT["volumes"]
    assert f"mkdir --mode 1777 {cache}" in " ".join(files.values(stage, "RUN"))


def test_export_writes_to_where_the_service_reads() -> None:
    (read,) = (each for each in FILLMASK["volumes"] if each["source"] == "./bundles")
    binds = [each for each in EXPORT["volumes"] if isinstance(each, dict)]
    assert [each["target"] for each in binds if each["source"] == "./bundles"] == [read["target"]]
    assert read["read_only"]
    cache = f"XDG_CACHE_HOME={read['target']}"
    assert cache in FILLMASK["environment"]
    assert cache in EXPORT["environment"]
    assert EXPORT["command"][:2] == ["${FILLMASK_CHECKPOINT:-}", "--cache"]
    # a variable of the shell selects a bundle of the export or a checkpoint in its cache
    assert {"FILLMASK_BUNDLE", "FILLMASK_CHECKPOINT"} <= {*FILLMASK["environment"]}
    # the service waits for the export only where the profile starts it
    assert EXPORT["profiles"] == ["export"]
    condition = {"condition": "service_completed_successfully", "required": False}
    assert FILLMASK["depends_on"]["export"] == condition


@pytest.mark.parametrize("page", [files.COMPOSE, *pages.PAGES], ids=lambda page: page.name)
def test_commands_build_the_image_again(page: Path) -> None:
    # Without --build, compose starts the image of an earlier version.
    for command in re.findall(r"docker compose.* up\b.*", pages.read(page)):
        assert " up --build" in command, command


def test_port_and_patience_are_those_of_the_service() -> None:
    (published,) = FILLMASK["ports"]
    assert published.rpartition(":")[2] == str(files.image_settings().port)
    assert int(FILLMASK["stop_grace_period"].removesuffix("s")) > files.DEFAULT_GRACE_S
