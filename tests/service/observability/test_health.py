"""Readiness before the start, after a stop and after a failure."""

from fillmask.observability.health import Health


def test_stop_is_final_and_the_first_reason_stays() -> None:
    # Later calls change neither readiness nor its reason.
    assert Health().not_ready_reason == "The service is starting; wait until it is ready."
    health = Health()
    health.ready()
    reasons = [health.not_ready_reason]
    health.stop("It broke.")
    health.stop("It stops.")
    health.ready()
    assert [*reasons, health.not_ready_reason] == [None, "It broke."]
