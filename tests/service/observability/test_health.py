"""Readiness: false before the start, and always after a stop or a failure."""

from service.observability.health import Health


def test_not_ready_at_first() -> None:
    """A service that loads its models is not ready."""
    assert Health().not_ready_reason == "The service is starting."


def test_ready() -> None:
    health = Health()
    health.ready()
    assert health.not_ready_reason is None


def test_stop_is_final_and_the_first_reason_stays() -> None:
    """Later calls neither make the service ready nor change the reason."""
    health = Health()
    health.ready()
    health.stop("It broke.")
    health.stop("It stops.")
    health.ready()
    assert health.not_ready_reason == "It broke."
