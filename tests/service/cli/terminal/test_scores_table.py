"""Table of the scores of a text."""

from service.cli.terminal.scores_table import format_scores
from service.cli.terminal.style import Style
from service.tasks.scoring import TextScore, TokenScore


def score(*surprisals: float) -> TextScore:
    """Make the score of a text with tokens of these surprisals."""
    tokens = [TokenScore(1, f"t{n}", 0, 1, -1.0, bits) for n, bits in enumerate(surprisals)]
    return TextScore(-2.5, 3.5, 1, tokens)


def test_the_highest_surprisal_has_a_full_bar() -> None:
    summary, *lines = format_scores(score(4, 8), Style())
    assert summary == (
        "Log-probability -2.5000, pseudo-perplexity 3.5000. Surprisal of each token in bits:"
    )
    assert lines == [
        f"   4.00  {'█' * 10}            t0",
        f"   8.00  {'█' * 20}  t1",
    ]


def test_a_text_without_surprisal_has_no_bars() -> None:
    _, line = format_scores(score(0), Style())
    assert line == f"   0.00  {' ' * 20}  t0"
