"""Client timeouts, with a clock that the tests set."""

from service.http.client_timeouts import REQUEST_TIMEOUT_S, RESPONSE_TIMEOUT_S, ClientTimeouts


def test_the_first_request_is_awaited_from_the_connection_on() -> None:
    """Not from its first byte on."""
    timeouts = ClientTimeouts(75, now_s=100)
    timeouts.record_request(begun=False, complete=False, now_s=120)
    assert timeouts.expired(100 + REQUEST_TIMEOUT_S) is None
    assert timeouts.expired(100.1 + REQUEST_TIMEOUT_S) == "request"


def test_a_request_has_its_time_from_its_first_byte_on() -> None:
    """Further bytes give it no more."""
    timeouts = ClientTimeouts(75, now_s=0)
    timeouts.record_request(begun=True, complete=True, now_s=1)
    assert timeouts.expired(1000) is None
    timeouts.record_request(begun=False, complete=False, now_s=1000)
    timeouts.record_request(begun=True, complete=False, now_s=1010)
    timeouts.record_request(begun=True, complete=False, now_s=1035)
    assert timeouts.expired(1010 + REQUEST_TIMEOUT_S) is None
    assert timeouts.expired(1010.1 + REQUEST_TIMEOUT_S) == "request"


def test_between_requests_it_is_keep_alive() -> None:
    """Counted from the first moment in which nothing is awaited."""
    timeouts = ClientTimeouts(75, now_s=0)
    timeouts.record_request(begun=True, complete=True, now_s=0)
    timeouts.record_request(begun=False, complete=False, now_s=10)
    timeouts.record_request(begun=False, complete=False, now_s=80)
    assert timeouts.expired(85) is None
    assert timeouts.expired(85.1) == "keep-alive"


def test_an_answer_must_be_read() -> None:
    """Wholly, within the time; less is not enough."""
    timeouts = ClientTimeouts(75, now_s=0)
    timeouts.record_request(begun=True, complete=True, now_s=0)
    timeouts.record_unread(10, now_s=1)
    timeouts.record_unread(5, now_s=50)
    assert timeouts.expired(1.1 + RESPONSE_TIMEOUT_S) == "response"
    timeouts.record_unread(0, now_s=60)
    assert timeouts.expired(1000) is None
