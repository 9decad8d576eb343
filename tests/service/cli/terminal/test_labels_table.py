"""Table of the labels of a text."""

from service.cli.terminal.labels_table import format_labels
from service.cli.terminal.style import Style
from service.tasks.classification import LabelScore

LABELS = [LabelScore("good", 0.9), LabelScore("b\x1bad\n", 1e-7)]


def test_probabilities_have_bars() -> None:
    """Control characters are not printed."""
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
