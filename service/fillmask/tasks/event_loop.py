"""Bounds on the work of the event loop.

Work below these bounds takes at most 0.3 ms. A switch to another thread and back takes 0.03 ms.
"""

# number of targets or labels to sort
LARGE_RANKING = 5_000
# number of characters of results to create and to serialize
LARGE_RESULT_CHARS = 100_000


def is_large(ranked: int, cost_chars: int) -> bool:
    """Return whether ranking or serializing results takes too long for the event loop.

    Args:
        ranked: number of targets or labels to sort.
        cost_chars: characters of the results. A result also counts as the number of characters
            that take as long to copy as creating it takes.
    """
    return ranked > LARGE_RANKING or cost_chars > LARGE_RESULT_CHARS
