"""Tables of the labels of a text and of the scores of its tokens."""

from fillmask.cli.terminal.style import Style
from fillmask.cli.terminal.text_tables import format_labels, format_scores
from fillmask.results.labels import LabelScore
from fillmask.results.scores import TextScore, TokenScore

LABELS = [LabelScore("good", 0.9), LabelScore("b\x1bad\n", 1e-7)]


def test_probabilities_have_bars() -> None:
    # The table shows "?" in place of a control character.
    assert list(format_labels(LABELS, Style(), has_logits=False)) == [
        " 0.9000  ██████████████████    good",
        "1.0e-07                        b?ad ",
    ]


def test_logits_have_no_bars() -> None:
    logits = [LabelScore("good", 12.34567), LabelScore("bad", -0.5)]
    assert list(format_labels(logits, Style(escapes=True), has_logits=True)) == [
        "  12.3457  \x1b[1mgood\x1b[0m",
        "  -0.5000  \x1b[1mbad\x1b[0m",
    ]


def score(*surprisals: float) -> TextScore:
    """Return the score of a text whose tokens have these surprisals."""
    tokens = tuple(TokenScore(1, f"t{n}", 0, 1, -1.0, bits) for n, bits in enumerate(surprisals))
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
