"""`docker compose up` serves on this machine alone, with little to lose."""

import re

from service import __version__
from tests.deploy import files

SERVICE = files.read_yaml(files.COMPOSE)["services"]["fillmask"]


def test_compose_builds_this_checkout_under_its_version() -> None:
    """What runs is what is here, and is called so."""
    assert SERVICE["build"] == "."
    assert SERVICE["image"] == f"fillmask:{__version__}"


def test_compose_publishes_on_the_loopback_address_only() -> None:
    """Nobody else on the network reaches a laptop's service."""
    port = files.DEFAULT_PORT
    assert SERVICE["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_compose_takes_away_what_the_service_does_not_need() -> None:
    """No writes, no capabilities, no new privileges."""
    assert SERVICE["read_only"] is True
    assert SERVICE["cap_drop"] == ["ALL"]
    assert SERVICE["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "devices", "network_mode", "user", "pid"} & SERVICE.keys()


def test_compose_limits_cpus_memory_and_processes() -> None:
    """The service takes its number of threads from the CPU limit, and cannot starve the machine."""
    assert SERVICE["cpus"] >= 1
    assert re.fullmatch(r"\d+[mg]", SERVICE["mem_limit"])
    assert SERVICE["pids_limit"] > 0


def test_compose_mounts_the_users_bundles_for_reading() -> None:
    """A bundle in ./bundles can be served, and not be changed."""
    assert SERVICE["volumes"] == ["./bundles:/bundles:ro"]
    assert "FILLMASK_BUNDLE: /bundles/" in files.COMPOSE.read_text()


def test_compose_checks_health_as_the_image_does() -> None:
    """One check, wherever it is written."""
    assert SERVICE["healthcheck"]["test"] == ["CMD", *files.health_check_command()]


def test_compose_waits_longer_than_the_drain() -> None:
    """Requests that were accepted are answered before the container is killed."""
    grace = re.fullmatch(r"(\d+)s", SERVICE["stop_grace_period"])
    assert grace
    assert int(grace[1]) > files.DEFAULT_GRACE_S
