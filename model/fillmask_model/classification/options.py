"""Command-line options that `classify` and `compare` share."""

from __future__ import annotations

import argparse
from pathlib import Path

from fillmask.tables.delimited import Dialect
from fillmask_model.classification.config import ClassifyConfig
from fillmask_model.classification.data.dataset import Columns, read_dataset
from fillmask_model.classification.data.split import (
    describe_repeated_texts,
    describe_shared_texts,
    split_dataset,
)
from fillmask_model.encoder.classifier import ProblemType
from fillmask_model.fine_tuning.tables import Dataset

DEFAULT_VALIDATION_SHARE = 0.1


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the data."""
    parser.add_argument("data", type=Path, help="labelled texts (.csv, .tsv, .jsonl, also .gz)")
    Dialect.add_options(parser)
    parser.add_argument(
        "--validation", type=Path, help="file with the validation rows (default: rows of DATA)"
    )
    parser.add_argument(
        "--validation-share",
        type=float,
        default=DEFAULT_VALIDATION_SHARE,
        help="share of the rows of DATA for validation without --validation (default: %(default)s)",
    )
    parser.add_argument(
        "--text-column", default="text", help="column of the text (default: %(default)s)"
    )
    parser.add_argument(
        "--text-pair-column",
        help="column of the second text (default: text_pair if the file has it)",
    )
    parser.add_argument(
        "--label-column", default="label", help="column of the label (default: %(default)s)"
    )
    parser.add_argument(
        "--max-tokens",
        type=int,
        help="maximum length of a text in tokens (default: maximum of the encoder)",
    )


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the head, the device and the hyperparameters."""
    parser.add_argument(
        "--pooling",
        choices=("mean", "first"),
        default="mean",
        help="input of the head, the mean of all hidden states or the hidden state of the first "
        "token (default: %(default)s)",
    )
    ClassifyConfig.add_options(parser)


def columns_of(options: argparse.Namespace) -> Columns:
    """Return the column names from the command line."""
    names = (options.text_column, options.text_pair_column, options.label_column)
    return Columns(*names, Dialect.of(options))


def read_training_data(
    options: argparse.Namespace, problem_type: ProblemType
) -> tuple[Dataset, Dataset, list[str]]:
    """Read the training and the validation rows.

    Returns:
        The training rows, the validation rows, and notes for the user about ignored columns
        and repeated texts.

    Raises:
        ValueError: a file is invalid, or only one of the two files has pairs.
    """
    columns = columns_of(options)
    training = read_dataset(options.data, columns, problem_type)
    notes = []
    if training.ignored_columns:
        notes.append(f"ignored columns of {training.path}: {', '.join(training.ignored_columns)}")
    notes += describe_repeated_texts(training)
    if options.validation is None:
        return *split_dataset(training, options.validation_share), notes
    validation = read_dataset(options.validation, columns, problem_type)
    check_same_form(training, validation)
    return training, validation, notes + describe_shared_texts(training, validation)


def check_same_form(training: Dataset, other: Dataset) -> None:
    """Check that two files both have pairs or both have single texts.

    Raises:
        ValueError: only one of the files has pairs.
    """
    if training.has_pairs != other.has_pairs:
        pairs, single = (training, other) if training.has_pairs else (other, training)
        raise ValueError(
            f"{pairs.path} has pairs and {single.path} has single texts; use the same columns in "
            "both files"
        )
