"""Table of the scores of a text and its tokens."""

from collections.abc import Iterator

from service.cli.terminal.style import BAR_CELLS, BOLD, DIM, GAP, Style, format_bar, visible
from service.tasks.scoring import TextScore


def format_scores(score: TextScore, style: Style) -> Iterator[str]:
    """Format the score of a text and the surprisals of its tokens as the lines of a table.

    The token with the highest surprisal has a full bar.
    """
    yield style.apply(
        DIM,
        f"Log-probability {score.log_prob:.4f}, pseudo-perplexity {score.pseudo_perplexity:.4f}. "
        "Surprisal of each token in bits:",
    )
    largest = max(token.surprisal for token in score.tokens)
    for token in score.tokens:
        share = token.surprisal / largest if largest > 0 else 0.0
        bar = format_bar(share, style).ljust(BAR_CELLS)
        name = style.apply(BOLD, visible(token.token_str))
        yield GAP.join([f"{token.surprisal:7.2f}", bar, name])
