"""Readiness: not at first, and never again after a stop or a failure."""

from service.observability.health import Health


def test_not_ready_before_it_is_told() -> None:
    """A service that loads its model is not ready."""
    assert Health().not_ready_reason == "The service is starting."


def test_ready() -> None:
    """Ready means no reason against it."""
    health = Health()
    health.ready()
    assert health.not_ready_reason is None


def test_the_end_is_for_good_and_the_first_reason_stays() -> None:
    """What has failed is not made ready, or its reason changed, by what comes after."""
    health = Health()
    health.ready()
    health.stop("It broke.")
    health.stop("It stops.")
    health.ready()
    assert health.not_ready_reason == "It broke."
