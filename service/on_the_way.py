"""The number of requests that have begun and will not join the queue of the model soon."""


class OnTheWay:
    """A count of requests that wait for their clients, or have been in the queue already.

    Who estimates what is about to join the queue subtracts them from all that have begun: clients
    that send slowly or do not read would count as work otherwise, and others be rejected for it.

    Attributes:
        elsewhere: the count.
    """

    def __init__(self) -> None:
        self.elsewhere = 0
