"""Limit on the unread bytes of large responses."""

from fillmask.http.unsent_responses import UnsentResponses


class Client:
    """Client that records its abort."""

    cut = False

    def abort_slow_client(self) -> None:
        self.cut = True


def test_slowest_reader_is_aborted_first() -> None:
    # Readers are in the order of their last progress.
    unsent = UnsentResponses(10)
    first, second, third = Client(), Client(), Client()
    with unsent.sending(first, 5), unsent.sending(second, 5):
        assert unsent.total_bytes == 10
        unsent.record_progress(first)
        with unsent.sending(third, 4):
            assert (first.cut, second.cut, third.cut) == (False, True, False)
            assert unsent.total_bytes == 9
        assert unsent.total_bytes == 5
    assert unsent.total_bytes == 0


def test_response_above_the_limit_is_sent_alone() -> None:
    unsent = UnsentResponses(10)
    first, second = Client(), Client()
    with unsent.sending(first, 3), unsent.sending(second, 11):
        assert (first.cut, second.cut) == (True, False)
        unsent.record_progress(first)
    assert unsent.total_bytes == 0
