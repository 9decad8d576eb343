"""Hardened services of compose.yaml, on the loopback address and with existing mounts."""

import re
from typing import Any

import pytest

from service import __version__
from tests.deploy import files

SERVICES: dict[str, dict[str, Any]] = files.read_yaml(files.COMPOSE)["services"]
FILLMASK = SERVICES["fillmask"]
NO_BUNDLES_YET = {"./bundles"}


@pytest.mark.parametrize("name", SERVICES)
def test_service_has_few_rights_and_is_reached_from_this_machine_only(name: str) -> None:
    service = SERVICES[name]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "devices", "network_mode", "user", "pid"} & service.keys()
    assert {"mem_limit", "pids_limit"} <= service.keys()


@pytest.mark.parametrize("name", SERVICES)
def test_mounted_files_exist_and_are_read_only(name: str) -> None:
    for volume in SERVICES[name]["volumes"]:
        source, _, *mode = volume.split(":")
        if source.startswith("./"):
            assert mode == ["ro"]
            assert source in NO_BUNDLES_YET or (files.ROOT / source).is_file()


def test_published_port_is_the_one_that_the_service_listens_on() -> None:
    (published,) = FILLMASK["ports"]
    assert published.rpartition(":")[2] == str(files.image_settings().port)


def test_every_image_has_a_version() -> None:
    assert FILLMASK["image"] == f"fillmask:{__version__}"
    assert all(re.search(r":v?\d+\.\d+\.\d+$", each["image"]) for each in SERVICES.values())


def test_compose_waits_longer_than_the_drain() -> None:
    grace = re.fullmatch(r"(\d+)s", FILLMASK["stop_grace_period"])
    assert grace
    assert int(grace[1]) > files.DEFAULT_GRACE_S
