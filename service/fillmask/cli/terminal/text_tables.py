"""Tables of the labels of a text, of the scores of its tokens and of its sparse vector."""

from collections.abc import Iterator, Sequence

from fillmask.cli.terminal.style import (
    BAR_CELLS,
    BOLD,
    DIM,
    GAP,
    Style,
    format_bar,
    format_number,
    visible,
)
from fillmask.results.labels import LabelScore
from fillmask.results.scores import TextScore
from fillmask.results.sparse import SparseEmbedding


def format_labels(labels: Sequence[LabelScore], style: Style, *, has_logits: bool) -> Iterator[str]:
    """Format labels as the lines of a table.

    Args:
        labels: the labels, best first.
        has_logits: True if the scores are logits. False for probabilities, which have bars.
    """
    for one in labels:
        label = style.apply(BOLD, visible(one.label))
        if has_logits:
            yield GAP.join([f"{one.score:9.4f}", label])
        else:
            bar = format_bar(one.score, style).ljust(BAR_CELLS)
            yield GAP.join([format_number(one.score), bar, label])


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


def format_weights(vector: SparseEmbedding, style: Style) -> Iterator[str]:
    """Format a sparse vector as the lines of a table, largest weights first.

    The largest weight has a full bar.
    """
    weights = zip(vector.values.tolist(), vector.tokens, strict=True)
    ranked = sorted(weights, key=lambda one: -one[0])
    for weight, token in ranked:
        bar = format_bar(weight / ranked[0][0], style).ljust(BAR_CELLS)
        yield GAP.join([f"{weight:7.4f}", bar, style.apply(BOLD, visible(token))])
