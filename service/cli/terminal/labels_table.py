"""Table of the labels of a text."""

from collections.abc import Iterator, Sequence

from service.cli.terminal.style import (
    BAR_CELLS,
    BOLD,
    GAP,
    Style,
    format_bar,
    format_number,
    visible,
)
from service.tasks.classification import LabelScore


def format_labels(labels: Sequence[LabelScore], style: Style, *, has_logits: bool) -> Iterator[str]:
    """Format labels as the lines of a table.

    Args:
        labels: the labels, best first.
        style: style of the output stream.
        has_logits: True if the scores are logits. Other scores are probabilities with bars.
    """
    for one in labels:
        label = style.apply(BOLD, visible(one.label))
        if has_logits:
            yield GAP.join([f"{one.score:9.4f}", label])
        else:
            bar = format_bar(one.score, style).ljust(BAR_CELLS)
            yield GAP.join([format_number(one.score), bar, label])
