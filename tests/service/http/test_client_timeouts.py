"""Client timeouts, with a clock that the tests set."""

from fillmask.http.client_timeouts import REQUEST_TIMEOUT_S, RESPONSE_TIMEOUT_S, ClientTimeouts


def test_first_request_timeout_starts_with_the_connection() -> None:
    timeouts = ClientTimeouts(75, now_s=100)
    timeouts.record_request(begun=False, complete=False, now_s=120)
    assert timeouts.expired(100 + REQUEST_TIMEOUT_S) is None
    assert timeouts.expired(100.1 + REQUEST_TIMEOUT_S) == "request"


def test_request_timeout_starts_with_its_first_byte() -> None:
    # Further bytes do not extend the timeout.
    timeouts = ClientTimeouts(75, now_s=0)
    timeouts.record_request(begun=True, complete=True, now_s=1)
    assert timeouts.expired(1000) is None
    timeouts.record_request(begun=False, complete=False, now_s=1000)
    timeouts.record_request(begun=True, complete=False, now_s=1010)
    timeouts.record_request(begun=True, complete=False, now_s=1035)
    assert timeouts.expired(1010 + REQUEST_TIMEOUT_S) is None
    assert timeouts.expired(1010.1 + REQUEST_TIMEOUT_S) == "request"


def test_keep_alive_timeout_between_requests() -> None:
    # The timeout starts when the connection becomes idle.
    timeouts = ClientTimeouts(75, now_s=0)
    timeouts.record_request(begun=True, complete=True, now_s=0)
    timeouts.record_request(begun=False, complete=False, now_s=10)
    timeouts.record_request(begun=False, complete=False, now_s=80)
    assert timeouts.expired(85) is None
    assert timeouts.expired(85.1) == "keep-alive"


def test_response_timeout() -> None:
    # Reading a part of the response does not extend the timeout.
    timeouts = ClientTimeouts(75, now_s=0)
    timeouts.record_request(begun=True, complete=True, now_s=0)
    timeouts.record_unread(10, now_s=1)
    timeouts.record_unread(5, now_s=50)
    assert timeouts.expired(1.1 + RESPONSE_TIMEOUT_S) == "response"
    timeouts.record_unread(0, now_s=60)
    assert timeouts.expired(1000) is None
